//! What a setting's numbers must satisfy, each in the sentence that refuses others.

use std::fmt;

use super::value::Number;

/// A condition on every number of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// Whatever its kind admits.
    Any,
    /// 1, 2, ….
    AtLeastOne,
    /// Up to this.
    AtMost(usize),
    /// Above 0.
    Positive,
    /// 0 or more.
    NotNegative,
    /// From the one to the other.
    Between(f64, f64),
    /// From 0 to 1.
    Share,
    /// From 0 to 1, but not 1 itself.
    ShareBelowOne,
    /// Below this, and why.
    Below(f64, &'static str),
}

impl Range {
    /// What is wrong with a number, if anything is.
    pub(super) fn refuses(self, number: Number) -> Option<String> {
        let value = number.value();
        let (admitted, must) = match self {
            Range::Any => return None,
            Range::AtLeastOne => (value >= 1.0, "must be at least 1".into()),
            Range::AtMost(most) => (value <= most as f64, format!("may come to {most} at most")),
            Range::Positive => (value > 0.0 && value.is_finite(), "must be above 0".to_string()),
            Range::NotNegative => (value >= 0.0 && value.is_finite(), "must be 0 or more".into()),
            Range::Between(least, most) => {
                ((least..=most).contains(&value), format!("must be between {least} and {most}"))
            }
            Range::Share => ((0.0..=1.0).contains(&value), "must be in [0, 1]".into()),
            Range::ShareBelowOne => ((0.0..1.0).contains(&value), "must be in [0, 1)".into()),
            Range::Below(most, why) if value >= most => {
                return Some(format!("must be below {most}, {why}"));
            }
            Range::Below(..) => return None,
        };
        (!admitted).then(|| format!("{must}, is {number}"))
    }
}

impl Number {
    /// Why it cannot be held, if it cannot: whole numbers have a sign in config.toml, and so 63
    /// bits; real ones are computed with in 32, where others would become infinity or 0.
    pub(super) fn cannot_be_held(self) -> Option<String> {
        let (most, least) = (f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE));
        match self {
            Number::Whole(n) if i64::try_from(n).is_err() => {
                Some(format!("may come to {} at most, is {self}", i64::MAX))
            }
            Number::Real(x) if x != 0.0 && !(least..=most).contains(&x.abs()) => Some(format!(
                "must be a number of 32 bits, of which {most:.1e} is the largest and {least:.1e} \
                 the smallest, is {self}"
            )),
            Number::Whole(_) | Number::Real(_) => None,
        }
    }

    fn value(self) -> f64 {
        match self {
            Number::Whole(n) => n as f64,
            Number::Real(x) => x,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Number::Whole(n) => n.fmt(f),
            // Nobody counts thirty zeros.
            Number::Real(x) if *x != 0.0 && !(1e-6..1e15).contains(&x.abs()) => write!(f, "{x:e}"),
            Number::Real(x) => x.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refuses_in_its_own_words() {
        let says = |range: Range, x: f64| range.refuses(Number::Real(x)).unwrap_or_default();
        let none = Number::Whole(0);
        assert_eq!(Range::AtLeastOne.refuses(none).unwrap(), "must be at least 1, is 0");
        assert_eq!(
            Range::AtMost(4096).refuses(Number::Whole(usize::MAX)),
            Some(format!("may come to 4096 at most, is {}", usize::MAX))
        );
        assert_eq!(says(Range::Positive, 0.0), "must be above 0, is 0");
        assert_eq!(says(Range::NotNegative, -0.5), "must be 0 or more, is -0.5");
        assert_eq!(
            says(Range::Between(0.001, 1000.0), 1e-30),
            "must be between 0.001 and 1000, is 1e-30"
        );
        assert_eq!(says(Range::Share, 1.5), "must be in [0, 1], is 1.5");
        assert_eq!(says(Range::ShareBelowOne, 1.0), "must be in [0, 1), is 1");
        assert_eq!(says(Range::Below(1.0, "or else"), 1.0), "must be below 1, or else");
        for x in [1e39, -1e300, 1e-40, f64::NAN] {
            let said = Number::Real(x).cannot_be_held().unwrap();
            assert!(said.starts_with("must be a number of 32 bits"), "{said}");
        }
        assert_eq!(Number::Real(0.0).cannot_be_held(), None);
        for range in [Range::Positive, Range::NotNegative, Range::Share, Range::Between(0.1, 1.0)] {
            assert!(!says(range, f64::NAN).is_empty() && says(range, 0.5).is_empty());
        }
    }
}
