//! Texts of strangers, as they may be shown.

/// On one line, without what would act on a terminal: control characters, and those that turn the
/// direction of writing.
pub(crate) fn plain(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let spaced = |c: char| if c.is_control() || turns(c) { ' ' } else { c };
    let spaced: String = text.chars().map(spaced).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts_on_a_terminal() {
        assert_eq!(plain("a\n\tb \u{1b}[31m\u{202e}c ü"), "a b [31m c ü");
    }
}
