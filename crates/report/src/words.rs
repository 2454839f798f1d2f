//! Numbers as people read them.

/// 12345 as 12,345.
pub fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    text
}

/// 1 copy, 2 copies.
pub fn counted(n: usize, one: &str, more: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { more })
}

/// Seconds as 45 s, 2 min 05 s or 3 h 20 min.
pub fn duration(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {:02} s", s / 60, s % 60),
        _ => format!("{} h {:02} min", s / 3600, s / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(1281167), "1,281,167");
    }

    #[test]
    fn one_is_one() {
        assert_eq!(counted(0, "copy", "copies"), "0 copies");
        assert_eq!(counted(1, "copy", "copies"), "1 copy");
        assert_eq!(counted(1200, "copy", "copies"), "1,200 copies");
    }

    #[test]
    fn durations_read_well() {
        assert_eq!(duration(0.4), "0 s");
        assert_eq!(duration(59.6), "1 min 00 s");
        assert_eq!(duration(125.0), "2 min 05 s");
        assert_eq!(duration(12000.0), "3 h 20 min");
        assert_eq!(duration(f64::NAN), "0 s");
    }
}
