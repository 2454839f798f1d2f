//! What several processes that train together must agree on, and who decides where their clocks or
//! machines could differ: the first.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::evaluation::LabelFree;
use anchorhood_data::{Dataset, FellowReaders, Fellows, Pictures};
use anchorhood_engine::{Communicator, Device};

use crate::{RunConfig, TrainError, TrainingSet, VERSION};

/// Says why several processes cannot train a run together, if they cannot: all of them ask, before
/// anything is made.
pub fn check_together(
    device: &Device,
    config: &RunConfig,
    data: &Dataset,
) -> Result<(), TrainError> {
    agree(device, config, data)?;
    check_shares(device, config, &TrainingSet::of(data))
}

/// Says why a configuration cannot be shared out among processes, if it cannot.
pub(crate) fn check_shares(
    device: &Device,
    config: &RunConfig,
    set: &TrainingSet,
) -> Result<(), TrainError> {
    let (batch, ranks) = (config.batch_of(set), device.communicator().ranks());
    if ranks == 1 {
        return Ok(());
    }
    if !batch.is_multiple_of(ranks) {
        return Err(TrainError::UnevenBatch { batch, ranks });
    }
    let method = config.method.name;
    method.multi_process.map_err(|why| TrainError::NotTogether { method, ranks, why })
}

/// The processes that open a data set together, for [`LoadOptions`](anchorhood_data::LoadOptions).
pub fn fellow_readers(together: &Communicator) -> FellowReaders {
    let several = together.ranks() > 1;
    several.then(|| Arc::new(Readers(together.clone())) as Arc<dyn Fellows>)
}

struct Readers(Communicator);

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} readers", self.0.ranks())
    }
}

impl Fellows for Readers {
    fn count(&self) -> usize {
        self.0.ranks()
    }

    fn part(&self, n: usize) -> Range<usize> {
        self.0.part(n)
    }

    fn share(&self, own: Vec<u8>) -> Result<Vec<Vec<u8>>, String> {
        let mut all = vec![];
        let shown = self.0.show_bytes(own, &mut |_, bytes| {
            all.push(bytes.to_vec());
            Ok(())
        });
        shown.map(|()| all).map_err(|e| e.to_string())
    }
}

/// This process's part of pictures.
pub(crate) fn own_pictures(device: &Device, pictures: &Pictures) -> Pictures {
    let part = device.communicator().part(pictures.len());
    if part.len() == pictures.len() {
        pictures.clone()
    } else {
        pictures.subset(&part.collect::<Vec<_>>())
    }
}

/// Refuses processes that were not given the same.
fn agree(device: &Device, config: &RunConfig, data: &Dataset) -> Result<(), TrainError> {
    let together = device.communicator();
    if together.is_single() {
        return Ok(());
    }
    let all = texts_of_all(together, &facts(device, config, data))?;
    first_difference(&all).map_or(Ok(()), Err)
}

/// The first thing in which a process's facts are not the first one's.
fn first_difference(all: &[String]) -> Option<TrainError> {
    let mut others = (1..).zip(&all[1..]);
    others.find_map(|(rank, text)| {
        let mut both = all[0].lines().zip(text.lines());
        let (first, other) = both.find(|(a, b)| a != b)?;
        let (what, first) = first.split_once('\t')?;
        let (_, other) = other.split_once('\t')?;
        Some(TrainError::Disagree {
            what: what.into(),
            first: first.into(),
            rank,
            other: other.into(),
        })
    })
}

/// A line for each thing that must be the same: its name, a tab, its value.
fn facts(device: &Device, config: &RunConfig, data: &Dataset) -> String {
    let test = data.test.as_ref().map_or(0, |t| t.pictures.len());
    let pictures = [data.train.pictures.len(), test];
    facts_of(VERSION, pictures, device.is_host(), config)
}

fn facts_of(version: &str, pictures: [usize; 2], is_host: bool, config: &RunConfig) -> String {
    let kind =
        if is_host { "a CPU".into() } else { format!("a GPU in {}", config.machine.precision) };
    let [train, test] = pictures.map(|n| n.to_string());
    let mut facts = vec![
        ("version".into(), version.into()),
        ("pictures to train on".into(), train),
        ("pictures to test on".into(), test),
        ("device".into(), kind),
    ];
    facts.extend(config.decisive());
    let line = |(name, value): (String, String)| format!("{name}\t{}\n", value.replace('\n', " "));
    facts.into_iter().map(line).collect()
}

/// Every process's text, in rank order.
fn texts_of_all(together: &Communicator, own: &str) -> Result<Vec<String>, TrainError> {
    let mut all = vec![];
    together.show_bytes(own.into(), &mut |_, bytes| {
        all.push(String::from_utf8_lossy(bytes).into_owned());
        Ok(())
    })?;
    Ok(all)
}

/// Whether any process says so.
pub(crate) fn any(together: &Communicator, here: bool) -> Result<bool, TrainError> {
    let mut flag = [f64::from(u8::from(here))];
    together.max_f64(&mut flag)?;
    Ok(flag[0] > 0.0)
}

/// Each number as the sum of all processes'.
pub(crate) fn sums<const N: usize>(
    together: &Communicator,
    mut here: [f64; N],
) -> Result<[f64; N], TrainError> {
    together.sum_f64(&mut here)?;
    Ok(here)
}

/// The number that the first process has.
pub(crate) fn of_first(together: &Communicator, here: usize) -> Result<usize, TrainError> {
    let mut number = [here as u64];
    together.broadcast(&mut number, 0)?;
    Ok(number[0] as usize)
}

/// What the first process finds, the others waiting for it.
pub(crate) fn label_free_of_first(
    together: &Communicator,
    judge: impl FnOnce() -> Result<LabelFree, TrainError>,
) -> Result<LabelFree, TrainError> {
    if together.is_single() {
        return judge();
    }
    let mut found = [0.0; 6];
    if together.is_first() {
        let f = judge()?;
        let pictures = f.pictures as f64;
        found = [pictures, f.found, f.agreement, f.score, f.effective_rank, f.uniformity];
    }
    together.broadcast(&mut found, 0)?;
    let [pictures, found, agreement, score, effective_rank, uniformity] = found;
    let pictures = pictures as usize;
    Ok(LabelFree { pictures, found, agreement, score, effective_rank, uniformity })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PrecisionChoice, Preset};

    /// What is said where the third of three processes has another text than the others.
    fn said(other: String) -> Option<String> {
        let usual = facts_of("0.1.0", [100, 10], true, &Preset::Quick.config("shapes"));
        let found = first_difference(&[usual.clone(), usual, other]);
        found.map(|error| error.to_string())
    }

    #[test]
    fn whatever_differs_is_named_with_both_values() {
        let config = Preset::Quick.config("shapes");
        let of = |version, pictures, is_host| facts_of(version, pictures, is_host, &config);
        assert_eq!(said(of("0.1.0", [100, 10], true)), None);
        for (other, expected) in [
            (of("0.2.0", [100, 10], true), "version: 0.1.0 on rank 0, 0.2.0 on rank 2"),
            (of("0.1.0", [99, 10], true), "pictures to train on: 100 on rank 0, 99 on rank 2"),
            (of("0.1.0", [100, 9], true), "pictures to test on: 10 on rank 0, 9 on rank 2"),
            (of("0.1.0", [100, 10], false), "device: a CPU on rank 0, a GPU in bf16 on rank 2"),
        ] {
            let found = said(other).unwrap();
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn precisions_must_agree_on_gpus_and_settings_everywhere() {
        let mut config = Preset::Quick.config("shapes");
        let gpu = |config: &RunConfig| facts_of("0.1.0", [100, 10], false, config);
        let bf16 = gpu(&config);
        config.machine.precision = PrecisionChoice::F32;
        let found = first_difference(&[bf16, gpu(&config)]).unwrap().to_string();
        let expected = "device: a GPU in bf16 on rank 0, a GPU in f32 on rank 1";
        assert!(found.contains(expected), "{found}");
        // A CPU computes in f32, whatever is asked of GPUs.
        assert_eq!(said(facts_of("0.1.0", [100, 10], true, &config)), None);
        config.seed = 7;
        let found = said(facts_of("0.1.0", [100, 10], true, &config)).unwrap();
        assert!(found.contains("seed: 0 on rank 0, 7 on rank 2"), "{found}");
    }
}
