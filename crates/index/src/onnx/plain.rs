//! Texts of strangers, as they may be shown.

use anchorhood_data::unseen;

/// On one line, without what would act on a terminal.
pub(crate) fn plain(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if unseen(c) { ' ' } else { c }).collect();
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
