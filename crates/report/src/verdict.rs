//! Did training work? One sentence, for the end of `train` and the top of a report.

use std::fmt;

use anchorhood_train::{Chosen, LabelFreeEvaluated, Subject};

use crate::Summary;

#[cfg(test)]
mod of_runs;

/// What a run's features are compared with raw pixels by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// kNN accuracy, where there are labels.
    Knn,
    /// The score without labels, where there are none.
    LabelFree,
}

/// What a run began with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Begun {
    /// A network as it was drawn, and how good that was.
    Untrained(f64),
    /// A model, and how good that was.
    Model(f64),
}

/// A run's features against raw pixels and against what it began with: shares, the greater the
/// better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Shares of what.
    pub measure: Measure,
    /// The run's model.
    pub model: f64,
    /// The pixels themselves.
    pub raw_pixels: f64,
    /// The network before training.
    pub begun: Begun,
}

impl Verdict {
    /// Pixels know nothing of a picture that was cut out elsewhere, and are better for all else
    /// than copies make them look: a score must be greater by a quarter before it says anything.
    const CLEARLY: f64 = 1.25;

    /// Whether training was worth it: the features are better than raw pixels, and than a model it
    /// began from.
    pub fn better(&self) -> bool {
        let over_pixels = match self.measure {
            Measure::Knn => self.model > self.raw_pixels,
            Measure::LabelFree => self.model > Verdict::CLEARLY * self.raw_pixels,
        };
        match self.begun {
            Begun::Untrained(_) => over_pixels,
            Begun::Model(before) => over_pixels && self.model > (1.0 + self.unsure()) * before,
        }
    }

    /// Of two good networks figures without labels do not tell the better one, unless they are
    /// clearly apart.
    fn unsure(&self) -> f64 {
        match self.measure {
            Measure::Knn => 0.0,
            Measure::LabelFree => Chosen::CLEARLY,
        }
    }

    fn against(&self, f: &mut fmt::Formatter, before: f64, figures: &str) -> fmt::Result {
        let points = 100.0 * (self.model - before);
        let worse = self.model < (1.0 - self.unsure()) * before;
        match (self.better(), worse || self.measure == Measure::Knn) {
            (true, _) => write!(f, "Better than before by {points:.1} points: {figures}."),
            (false, true) => write!(
                f,
                "Not better than before: use the model it began from, or train longer ({figures})."
            ),
            (false, false) => write!(
                f,
                "About as good as before, as far as that can be told without labels ({figures})."
            ),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let percent = |share: f64| format!("{:.1}%", 100.0 * share);
        let [model, raw] = [self.model, self.raw_pixels].map(percent);
        let what = match self.measure {
            Measure::Knn => "kNN",
            Measure::LabelFree => "score without labels",
        };
        let untrained = match self.begun {
            Begun::Untrained(untrained) => percent(untrained),
            Begun::Model(before) => {
                let own = percent(before);
                let figures = format!("{what} {model} against {own}, raw pixels {raw}");
                return self.against(f, before, &figures);
            }
        };
        let figures = format!("{what} {model} against {raw}, the untrained network {untrained}");
        let points = 100.0 * (self.model - self.raw_pixels);
        match self.better() {
            true => write!(f, "Better than raw pixels by {points:.1} points: {figures}."),
            false => write!(
                f,
                "Not better than raw pixels: train longer, or start from a trained model \
                 ({figures})."
            ),
        }
    }
}

impl Summary {
    /// The verdict so far; none of a run that was not judged, or by a program that took none.
    pub fn verdict(&self) -> Option<Verdict> {
        self.by_knn().or_else(|| self.without_labels())
    }

    /// The last evaluation without labels of the network that is the run's model: of the last one,
    /// or of the last that was chosen.
    pub fn model(&self) -> Option<&LabelFreeEvaluated> {
        let trained = |e: &&LabelFreeEvaluated| matches!(e.subject, Subject::Trained { .. });
        let mut judged = self.label_free.iter().filter(trained).rev();
        judged.find(|e| e.chosen != Some(false))
    }

    /// Which epoch's network is the model, and whether training stopped for it: a sentence, where
    /// it is not the last epoch's.
    pub fn choice(&self) -> Option<String> {
        let last = self.epochs.last().map(|e| (e.round, e.epoch))?;
        let Subject::Trained { round, epoch } = self.model()?.subject else {
            return None;
        };
        let model = format!("The model is that after round {round}, epoch {}", epoch + 1);
        match (self.stopped_early, (round, epoch) == last) {
            (Some(stop), _) => Some(format!(
                "{model}: training stopped early, since {} verdicts without labels in a row were \
                 clearly worse.",
                stop.worse
            )),
            (None, false) if self.model()?.chosen.is_some() => {
                Some(format!("{model}: later ones were clearly worse, judged without labels."))
            }
            (None, _) => None,
        }
    }

    fn by_knn(&self) -> Option<Verdict> {
        let last = self.evaluations.last()?.subject;
        let model = self.top1_of(self.model().map_or(last, |e| e.subject))?;
        compared(Measure::Knn, model, |subject| self.top1_of(subject))
    }

    fn without_labels(&self) -> Option<Verdict> {
        let of = |subject| {
            let mut judged = self.label_free.iter().filter(|e| e.subject == subject);
            judged.next().map(|e| e.figures.score)
        };
        compared(Measure::LabelFree, self.model()?.figures.score, of)
    }
}

/// A model against raw pixels and what it began with, as these were judged.
fn compared(measure: Measure, model: f64, of: impl Fn(Subject) -> Option<f64>) -> Option<Verdict> {
    let begun = of(Subject::Before).map(Begun::Model);
    let begun = begun.or_else(|| of(Subject::Untrained).map(Begun::Untrained))?;
    Some(Verdict { measure, model, raw_pixels: of(Subject::RawPixels)?, begun })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::{example, fine_tuned};
    use anchorhood_train::StoppedEarly;

    #[test]
    fn labels_have_the_say_where_there_are_any() {
        let said = |labels| Summary::of(&example(labels)).verdict().unwrap().to_string();
        assert_eq!(
            said(true),
            "Better than raw pixels by 50.0 points: kNN 70.0% against 20.0%, the untrained network \
             25.0%."
        );
        assert_eq!(
            said(false),
            "Better than raw pixels by 25.0 points: score without labels 35.0% against 10.0%, the \
             untrained network 12.5%."
        );
    }

    #[test]
    fn what_is_no_better_has_a_way_out() {
        let verdict = Verdict {
            measure: Measure::Knn,
            model: 0.2,
            raw_pixels: 0.2,
            begun: Begun::Untrained(0.1),
        };
        let said = verdict.to_string();
        assert!(said.starts_with(
            "Not better than raw pixels: train longer, or start from a trained model"
        ));
        let (measure, model) = (Measure::LabelFree, 0.24);
        let verdict = Verdict { measure, model, ..verdict };
        assert!(!verdict.better(), "not clearly");
        assert!(Verdict { model: 0.26, ..verdict }.better());
        assert_eq!(Summary::default().verdict(), None);
    }

    #[test]
    fn fine_tuning_is_judged_by_what_it_began_from() {
        let verdict = Summary::of(&fine_tuned(true)).verdict().unwrap();
        assert_eq!(
            verdict.to_string(),
            "Better than before by 45.0 points: kNN 70.0% against 25.0%, raw pixels 20.0%."
        );
        let of = |measure, model| {
            let verdict = Verdict { measure, model, raw_pixels: 0.2, begun: Begun::Model(0.5) };
            (verdict.better(), verdict.to_string())
        };
        let (better, said) = of(Measure::Knn, 0.49);
        assert!(!better && said.starts_with("Not better than before: use"));
        let (better, said) = of(Measure::LabelFree, 0.51);
        assert!(!better && said.starts_with("About as good as before"));
        assert!(of(Measure::LabelFree, 0.4).1.starts_with("Not better"));
        assert!(of(Measure::LabelFree, 0.6).0);
    }

    #[test]
    fn the_model_is_the_last_that_was_chosen() {
        let mut summary = Summary::of(&example(true));
        let trained = |e: &&mut LabelFreeEvaluated| matches!(e.subject, Subject::Trained { .. });
        let judged = summary.label_free.iter_mut().filter(trained);
        for (i, e) in judged.enumerate() {
            e.chosen = Some(i < 2);
        }
        let model = summary.model().unwrap().subject;
        assert_eq!(model, Subject::Trained { round: 0, epoch: 1 });
        assert!((summary.verdict().unwrap().model - 0.5).abs() < 1e-9);
        let said = summary.choice().unwrap();
        assert!(said.starts_with("The model is that after round 0, epoch 2: later"));
        summary.stopped_early = Some(StoppedEarly { round: 1, epoch: 1, worse: 2 });
        assert!(summary.choice().unwrap().contains("stopped early"));
        assert_eq!(Summary::of(&example(true)).choice(), None);
    }
}
