//! How long is a run? So many epochs as there are images for, or as there is time for.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Instant;

use anchorhood_data::Dataset;
use anchorhood_engine::Device;
use anchorhood_report::duration;
use anchorhood_train::{
    Beginning, Event, Measured, Pretrained, RunConfig, TimeBudget, found_by_first, measure,
};

use crate::{Error, OnEvent, refit};

/// Pixels that a run looks at where nobody says how long it is to be: 330,000 views of 32×32, two
/// to five minutes on two cores at the quick preset's width.
const A_RUN: usize = 330_000 * 32 * 32;
/// The most that such a run is to take on a CPU: five minutes, less a tenth for what else a machine
/// begins to do meanwhile.
const QUICK_MINUTES: f64 = 4.5;
/// Seconds that its steps are timed, to see whether it is as quick as that.
const A_GLANCE: f64 = 2.0;

/// Seconds of what follows a training: the page with its map of up to 2,000 pictures took 1.7 on
/// one core (an AMD EPYC).
const A_REPORT: f64 = 2.0;
/// The same of a GPU's large networks and memories: seven to eight beside an H200, while every
/// checkpoint was read whole.
const A_REPORT_ON_GPU: f64 = 8.0;

/// A preset cannot know how many pictures there are, and a few need more epochs than many: with 3 ×
/// 10 of 4,000 photographs AND does not pass raw pixels, with 3 × 30 it does.
pub fn enough_epochs(config: &RunConfig, data: &Dataset) -> usize {
    let pictures = &data.train.pictures;
    let views = config.method.views_of_a_picture();
    let pixels = pictures.len() * pictures.height() * pictures.width() * views;
    let rounds = config.training.rounds + 1;
    let least = (30 / rounds / views).max(1);
    (A_RUN / (pixels * rounds).max(1)).clamp(least, 100)
}

/// A new run, timed before it begins.
pub struct Timed<'a> {
    pub config: &'a RunConfig,
    pub data: &'a Dataset,
    pub model: Option<&'a Pretrained>,
    pub device: &'a Device,
    /// Where runs are kept.
    pub runs: &'a Path,
    /// When the program began.
    pub began: Instant,
    /// Whether rounds are somebody's wish.
    pub rounds_asked_for: bool,
}

impl Timed<'_> {
    /// The configuration that ends within so many minutes, with its floors.
    pub fn within(&self, minutes: f64, on_event: OnEvent) -> Result<(RunConfig, Beginning), Error> {
        let (measured, budget, rounds) = self.measured(self.budget(minutes))?;
        let with = |rounds, epochs| self.config.with_rounds(rounds, epochs);
        let found = || measured.fitted(&budget, rounds, with);
        let (rounds, epochs) = found_by_first(self.device.communicator(), found)?;
        let fitted = with(rounds, epochs);
        on_event(&measured.event(&budget, self.config, &fitted));
        Ok((fitted, Beginning::after(measured)))
    }

    /// The configuration where this machine is fast enough for it, else one that ends within
    /// [`QUICK_MINUTES`], with its floors.
    pub fn shortened(&self, on_event: OnEvent) -> Result<(RunConfig, Beginning), Error> {
        let config = self.config;
        let budget = TimeBudget { timing: A_GLANCE, ..self.budget(QUICK_MINUTES) };
        let (measured, budget, rounds) = self.measured(budget)?;
        let found = || Ok(measured.shortened(&budget, rounds, config));
        let (rounds, epochs) = found_by_first(self.device.communicator(), found)?;
        let own = &config.training;
        if (rounds, epochs) == (own.rounds, own.epochs) {
            return Ok((config.clone(), Beginning::after(measured)));
        }
        let fitted = config.with_rounds(rounds, epochs);
        let foreseen = measured.foreseen(&budget, &fitted);
        if foreseen <= budget.seconds {
            on_event(&measured.event(&budget, config, &fitted));
            let whole = (own.rounds + 1) * own.epochs;
            on_event(&Event::note(format!(
                "(a faster machine would take {whole} in all; --minutes or --epochs for longer)"
            )));
        } else {
            let least = match rounds {
                0 => "one epoch".into(),
                rounds => format!("an epoch in each of {} rounds", rounds + 1),
            };
            on_event(&Event::warning(format!(
                "as little as {least} will take about {} here; --limit learns from fewer pictures",
                duration(foreseen)
            )));
        }
        Ok((fitted, Beginning::after(measured)))
    }

    /// So many minutes since the program's start, the report included.
    fn budget(&self, minutes: f64) -> TimeBudget {
        TimeBudget {
            afterwards: if self.device.is_host() { A_REPORT } else { A_REPORT_ON_GPU },
            ..TimeBudget::new(60.0 * minutes, self.began)
        }
    }

    /// What the parts of the run take; the budget less what comes after training; and the rounds
    /// there may be.
    fn measured(
        &self,
        mut budget: TimeBudget,
    ) -> Result<(Measured, TimeBudget, RangeInclusive<usize>), Error> {
        let (device, config, data) = (self.device, self.config, self.data);
        let runs = self.runs.ancestors().find(|folder| folder.is_dir());
        let scratch = runs.unwrap_or(Path::new("."));
        let measured = measure(device, config, data, self.model, scratch, &budget)?;
        budget.afterwards += refit::seconds(config, data, device, &measured.costs);
        Ok((measured, budget, config.rounds_to_fit(self.rounds_asked_for)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_data::{Pictures, Split};
    use anchorhood_train::{Preset, methods};

    #[test]
    fn few_small_pictures_are_looked_at_more_often() {
        let of = |method, n: usize, side: usize| {
            let config = Preset::Quick.config_for("photos", method);
            let pictures = Pictures::new(side, side, vec![0; n * side * side * 3]).unwrap();
            let data = Dataset {
                name: "a test".into(),
                train: Split { pictures, labels: None, names: vec![] },
                test: None,
                mean: [0.0; 3],
                std: [1.0; 3],
                skipped: vec![],
                report: Default::default(),
            };
            enough_epochs(&config, &data)
        };
        let by_and = |n, side| of(&methods::AND, n, side);
        assert_eq!(by_and(20, 32), 100);
        assert_eq!(by_and(3600, 32), 30);
        assert_eq!(by_and(900, 64), 30);
        assert_eq!(by_and(20_000, 32), 10);
        // Five rounds, and two views of each picture in a step.
        let by_views = |n, side| of(&methods::ANCHORHOOD, n, side);
        assert_eq!(by_views(20, 32), 100);
        assert_eq!(by_views(4400, 32), 7);
        assert_eq!(by_views(1100, 64), 7);
        assert_eq!(by_views(20_000, 32), 3);
        // Nine tiles of each picture in a step, a whole and its quarters, and a picture alone.
        assert_eq!(of(&methods::JIGSAW, 4400, 32), 8);
        assert_eq!(of(&methods::COUNTING, 4400, 32), 15);
        assert_eq!(of(&methods::NAT, 4400, 32), 75);
        assert_eq!(of(&methods::JIGSAW, 20_000, 32), 3);
    }
}
