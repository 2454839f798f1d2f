//! The kinds of value a setting can have: each is written as text (a flag, `RunConfig::set`) and as
//! TOML, and read back the same.

use anchorhood_models::Backbone;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{DeviceChoice, LossRows, ValidateOn};

/// What can be typed for a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Whole,
    /// A real number.
    Real,
    /// `true` or `false`.
    Bool,
    /// Words, with a meaning of their own.
    Text,
    /// Two real numbers with a comma between them.
    Pair,
    /// Real numbers with commas between them, or `none`.
    List,
    /// One of these.
    Choice(&'static [&'static str]),
    /// A method, by its name.
    Method,
}

/// A number in a setting, for its range.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Whole(usize),
    Real(f64),
}

/// A setting's value.
pub(crate) trait Value: Sized + PartialEq {
    const KIND: Kind;

    /// As it can be typed.
    fn text(&self) -> String;

    /// From what was typed.
    fn parse(text: &str) -> Result<Self, String>;

    /// Into a file.
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error>;

    /// From a file.
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error>;

    /// What a file means that does not have it, for kinds that say so themselves.
    fn absent() -> Option<Self> {
        None
    }

    /// The numbers in it, each of which must lie in the setting's range.
    fn numbers(&self) -> Vec<Number> {
        vec![]
    }
}

/// A value on its way out of a file.
pub(super) struct Read<T>(pub T);

impl<'de, T: Value> Deserialize<'de> for Read<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        T::read(from).map(Read)
    }
}

/// A value on its way into a file.
pub(super) struct Write<'a, T>(pub &'a T);

impl<T: Value> Serialize for Write<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.write(to)
    }
}

/// In a file as in text.
macro_rules! by_text {
    () => {
        fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.serialize_str(&self.text())
        }

        fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            let text: String = serde::Deserialize::deserialize(from)?;
            Self::parse(&text).map_err(serde::de::Error::custom)
        }
    };
}

/// In a file as serde writes it.
macro_rules! by_serde {
    () => {
        fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            self.serialize(to)
        }

        fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            Self::deserialize(from)
        }
    };
}

/// In text as the standard library writes it.
macro_rules! by_display {
    () => {
        fn text(&self) -> String {
            self.to_string()
        }

        fn parse(text: &str) -> Result<Self, String> {
            text.parse().map_err(|e| format!("{e}"))
        }
    };
}

pub(super) use by_text;

/// Types whose text the standard library writes: their kind, how they are in a file, and the numbers
/// in them.
macro_rules! displayed {
    ($($type:ty: $kind:ident, $in_a_file:ident, $numbers:expr;)+) => {$(
        impl Value for $type {
            const KIND: Kind = Kind::$kind;
            by_display!();
            $in_a_file!();

            fn numbers(&self) -> Vec<Number> {
                let numbers: fn(&Self) -> Vec<Number> = $numbers;
                numbers(self)
            }
        }
    )+};
}

displayed! {
    u64: Whole, by_serde, |n| vec![Number::Whole(usize::try_from(*n).unwrap_or(usize::MAX))];
    usize: Whole, by_serde, |n| vec![Number::Whole(*n)];
    f64: Real, by_serde, |x| vec![Number::Real(*x)];
    bool: Bool, by_serde, |_| vec![];
    String: Text, by_serde, |_| vec![];
    DeviceChoice: Text, by_text, |_| vec![];
    &'static Backbone: Text, by_text, |_| vec![];
    ValidateOn: Text, by_text, |on| on.held_out().numbers();
    LossRows: Text, by_text, |rows| rows.sampled().numbers();
}

/// What is typed for nothing.
const NONE: &str = "none";

impl<T: Value + Serialize + for<'de> Deserialize<'de>> Value for Option<T> {
    const KIND: Kind = T::KIND;
    by_serde!();

    fn text(&self) -> String {
        self.as_ref().map_or(NONE.into(), T::text)
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            NONE => Ok(None),
            text => T::parse(text).map(Some),
        }
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn numbers(&self) -> Vec<Number> {
        self.as_ref().map_or(vec![], T::numbers)
    }
}

impl Value for (f64, f64) {
    const KIND: Kind = Kind::Pair;
    by_serde!();

    fn text(&self) -> String {
        format!("{},{}", self.0, self.1)
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(',') {
            Some((low, high)) => Ok((real(low)?, real(high)?)),
            None => Err("give two numbers: LOW,HIGH".into()),
        }
    }

    fn numbers(&self) -> Vec<Number> {
        vec![Number::Real(self.0), Number::Real(self.1)]
    }
}

impl Value for Vec<f64> {
    const KIND: Kind = Kind::List;
    by_serde!();

    fn text(&self) -> String {
        if self.is_empty() {
            NONE.into()
        } else {
            self.iter().map(f64::text).collect::<Vec<_>>().join(",")
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            NONE => Ok(vec![]),
            text => text.split(',').map(f64::parse).collect(),
        }
    }

    fn numbers(&self) -> Vec<Number> {
        self.iter().copied().map(Number::Real).collect()
    }
}

fn real(text: &str) -> Result<f64, String> {
    f64::parse(text.trim()).map_err(|e| format!("{text:?}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_pairs_and_nothing() {
        type Pair = (f64, f64);
        assert_eq!(Pair::parse("0.3, 1"), Ok((0.3, 1.0)));
        assert!(Pair::parse("0.3").is_err() && Pair::parse("a,1").is_err());
        assert_eq!(Vec::parse("0.5,0.9"), Ok(vec![0.5, 0.9]));
        assert_eq!(Vec::<f64>::parse("none"), Ok(vec![]));
        assert!(Vec::<f64>::parse("").is_err() && Vec::<f64>::parse("0.5,none").is_err());
        assert_eq!(Option::<usize>::parse("none"), Ok(None));
        assert!(Option::<usize>::parse("").is_err());
    }
}
