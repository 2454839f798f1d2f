//! A run in a few figures: the floors, and each round at its last epoch.

use anchorhood_train::evaluation::{Accuracy, Consistency};
use anchorhood_train::{
    EpochEnded, Evaluated, Event, LabelFreeEvaluated, PretextMeasured, RunEnded, RunStarted,
    StoppedEarly, Subject,
};

/// One round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundSummary {
    /// Which, from 0.
    pub round: usize,
    /// Its last evaluation.
    pub accuracy: Option<Accuracy>,
    /// How many pictures were anchors; none in round 0.
    pub anchors: Option<usize>,
    /// How often neighbours carried the anchor's label.
    pub consistency: Option<Consistency>,
    /// Mean loss of its last epoch.
    pub loss: Option<f64>,
    /// Discovery, training and evaluation.
    pub seconds: f64,
}

/// A run, added up from its events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// What was trained on what.
    pub started: Option<RunStarted>,
    /// What there is to compare with: raw pixels, and the untrained network or the model that the
    /// run began from.
    pub floors: Vec<Evaluated>,
    /// The rounds so far.
    pub rounds: Vec<RoundSummary>,
    /// All epochs.
    pub epochs: Vec<EpochEnded>,
    /// What every epoch's pretext task came to.
    pub pretext: Vec<PretextMeasured>,
    /// All evaluations of the trained network.
    pub evaluations: Vec<Evaluated>,
    /// All evaluations without labels, the floors' too.
    pub label_free: Vec<LabelFreeEvaluated>,
    /// The model as it is used: pixels a side of the pictures it is given, and how good it is then.
    pub as_used: Option<(usize, Accuracy)>,
    /// Where training stopped, if that was before its last epoch.
    pub stopped_early: Option<StoppedEarly>,
    /// The end, once reached.
    pub ended: Option<RunEnded>,
}

impl Summary {
    /// Adds events up.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut summary = Summary::default();
        for event in events {
            summary.add(event);
        }
        summary
    }

    /// Adds one event.
    pub fn add(&mut self, event: &Event) {
        match event {
            Event::RunStarted(started) => self.started = Some(started.clone()),
            Event::Discovered(d) => {
                let round = self.round(d.round);
                round.anchors = Some(d.anchors);
                round.consistency = d.consistency;
                round.seconds += d.seconds;
            }
            Event::EpochEnded(e) => {
                let round = self.round(e.round);
                round.loss = Some(e.loss);
                round.seconds += e.seconds;
                self.epochs.push(*e);
            }
            Event::Evaluated(e) => self.add_evaluation(e),
            Event::LabelFree(e) => {
                if let Subject::Trained { round, .. } = e.subject {
                    self.round(round).seconds += e.seconds;
                }
                self.label_free.push(*e);
            }
            Event::Pretext(p) => self.pretext.push(p.clone()),
            Event::StoppedEarly(at) => self.stopped_early = Some(*at),
            Event::RunEnded(ended) => self.ended = Some(*ended),
            _ => {}
        }
    }

    fn add_evaluation(&mut self, e: &Evaluated) {
        match e.subject {
            Subject::Trained { round, .. } => {
                let round = self.round(round);
                round.accuracy = Some(e.accuracy);
                round.seconds += e.seconds;
                self.evaluations.push(*e);
            }
            Subject::Model { size } => self.as_used = Some((size, e.accuracy)),
            Subject::RawPixels | Subject::Untrained | Subject::Before => self.floors.push(*e),
        }
    }

    /// The round of that number, put in its place where it is new; a file may name any, so none
    /// before it is made up.
    fn round(&mut self, round: usize) -> &mut RoundSummary {
        let place = self.rounds.binary_search_by_key(&round, |r| r.round);
        let at = place.unwrap_or_else(|at| {
            let fresh = RoundSummary { round, ..RoundSummary::default() };
            self.rounds.insert(at, fresh);
            at
        });
        &mut self.rounds[at]
    }

    /// What kind of pictures it is judged on: `test`, or `validation` where they were held out of
    /// training.
    pub fn judged_on(&self) -> &'static str {
        match &self.started {
            Some(started) if started.validation => "validation",
            _ => "test",
        }
    }

    /// Whether there is any accuracy to show.
    pub fn has_accuracy(&self) -> bool {
        let rounds = self.rounds.iter().any(|r| r.accuracy.is_some());
        !self.floors.is_empty() || rounds || self.as_used.is_some()
    }
}

/// What a floor is called.
pub(crate) fn floor_name(subject: Subject) -> Option<&'static str> {
    match subject {
        Subject::RawPixels => Some("raw pixels"),
        Subject::Untrained => Some("untrained"),
        Subject::Before => Some("before"),
        Subject::Trained { .. } | Subject::Model { .. } => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use anchorhood_train::Discovered;
    use anchorhood_train::evaluation::LabelFree;

    /// The same of a run that began from a model.
    pub fn fine_tuned(labels: bool) -> Vec<Event> {
        begun_from(Subject::Before, labels)
    }

    /// A run of two rounds of two epochs, evaluated after each.
    pub fn example(labels: bool) -> Vec<Event> {
        begun_from(Subject::Untrained, labels)
    }

    fn begun_from(beginning: Subject, labels: bool) -> Vec<Event> {
        let mut events = vec![];
        let accuracy = |top1| Accuracy {
            top1,
            top5: Some(top1 / 2.0 + 0.5),
            n: 500,
            k: 200,
            temperature: 0.07,
        };
        let judge = |events: &mut Vec<Event>, subject, top1| {
            if labels {
                events.push(Event::Evaluated(Evaluated {
                    subject,
                    accuracy: accuracy(top1),
                    seconds: 0.5,
                }));
            }
            events.push(Event::LabelFree(LabelFreeEvaluated {
                subject,
                figures: LabelFree {
                    pictures: 500,
                    found: top1 / 2.0,
                    agreement: top1 / 2.0,
                    score: top1 / 2.0,
                    effective_rank: 20.0,
                    uniformity: -2.0,
                },
                chosen: None,
                seconds: 0.25,
            }));
        };
        judge(&mut events, Subject::RawPixels, 0.2);
        judge(&mut events, beginning, 0.25);
        for round in 0..2 {
            events.push(Event::RoundStarted { round, rounds: 1 });
            if round > 0 {
                events.push(Event::Discovered(Discovered {
                    round,
                    anchors: 1000,
                    pictures: 1000,
                    k: 1,
                    mean_entropy: 5.0,
                    anchor_entropy: 4.0,
                    recall: None,
                    consistency: labels.then_some(Consistency {
                        consistent_anchors: 600,
                        anchors: 1000,
                        consistent_pairs: 600,
                        pairs: 1000,
                    }),
                    seconds: 1.0,
                }));
            }
            for epoch in 0..2 {
                events.push(Event::EpochEnded(EpochEnded {
                    round,
                    epoch,
                    epochs: 2,
                    loss: 7.0 - (2 * round + epoch) as f64,
                    rate: 0.03,
                    pictures_per_second: 100.0,
                    seconds: 10.0,
                }));
                let top1 = 0.4 + 0.1 * (2 * round + epoch) as f64;
                judge(&mut events, Subject::Trained { round, epoch }, top1);
            }
        }
        events.push(Event::RunEnded(RunEnded {
            seconds: 44.0,
            loss: 4.0,
            last: labels.then(|| accuracy(0.7)),
            best: labels.then(|| accuracy(0.7)),
        }));
        events
    }

    #[test]
    fn each_round_counts_with_its_last_epoch() {
        let summary = Summary::of(&example(true));
        assert_eq!(summary.floors.len(), 2);
        assert_eq!(summary.rounds.len(), 2);
        let last = &summary.rounds[1];
        assert_eq!(last.loss, Some(4.0));
        assert!((last.accuracy.unwrap().top1 - 0.7).abs() < 1e-12);
        assert_eq!(last.anchors, Some(1000));
        assert_eq!(last.seconds, 22.5, "discovery, two epochs, two evaluations");
        assert_eq!(summary.rounds[0].anchors, None);
    }

    #[test]
    fn a_run_without_labels_has_no_accuracy() {
        let summary = Summary::of(&example(false));
        assert!(!summary.has_accuracy());
        assert_eq!(summary.rounds[1].loss, Some(4.0));
    }
}
