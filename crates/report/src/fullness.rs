//! How much does a page show? Told from the page itself, whoever wrote it, so that a fuller one is not replaced by a poorer one.

/// What of a report cannot be had again without the pictures, the checkpoints or the strips it was made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fullness {
    pictures: bool,
    map: bool,
    rounds: usize,
    strips: usize,
}

impl Fullness {
    /// Of a page; names on it are escaped, and cannot be taken for its parts.
    pub fn of(page: &str) -> Fullness {
        Fullness {
            pictures: page.contains("data:image/jpeg;base64,"),
            map: page.contains("id=\"map-data\""),
            rounds: page.matches("<section data-panel=\"rounds\">").count(),
            strips: page.matches("<img class=\"strip\"").count(),
        }
    }

    /// What a page like `new` would lose against this one, in words.
    pub fn lost_in(&self, new: &Fullness) -> Option<String> {
        let lost = [
            (self.pictures && !new.pictures, "the pictures".to_string()),
            (self.map && !new.map, "the map".to_string()),
            (
                self.rounds > new.rounds,
                format!(
                    "{} of {} rounds",
                    self.rounds - new.rounds.min(self.rounds),
                    self.rounds
                ),
            ),
            (
                self.strips > new.strips,
                format!(
                    "{} of {} strips of attention",
                    self.strips - new.strips.min(self.strips),
                    self.strips
                ),
            ),
        ];
        let lost: Vec<String> = lost
            .into_iter()
            .filter_map(|(is_lost, what)| is_lost.then_some(what))
            .collect();
        (!lost.is_empty()).then(|| lost.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_lost_is_named() {
        let full = Fullness {
            pictures: true,
            map: true,
            rounds: 3,
            strips: 2,
        };
        assert_eq!(full.lost_in(&full), None);
        assert_eq!(Fullness::default().lost_in(&full), None);
        let poorer = Fullness {
            pictures: false,
            rounds: 1,
            ..full
        };
        let lost = full.lost_in(&poorer).unwrap();
        assert_eq!(lost, "the pictures, 2 of 3 rounds");
        let none = full.lost_in(&Fullness::default()).unwrap();
        assert!(none.contains("the map") && none.contains("2 of 2 strips"));
    }
}
