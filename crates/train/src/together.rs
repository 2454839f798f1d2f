//! What several processes that train together must agree on, and who decides where their clocks or machines could differ: the first.

use anchorhood_data::{Dataset, Pictures};
use anchorhood_engine::{Communicator, Device};
use anchorhood_evaluate::LabelFree;

use crate::{MethodChoice, PrecisionChoice, RunConfig, TrainError, TrainingSet, VERSION};

/// Says why several processes cannot train a run together, if they cannot: all of them ask, before anything is made.
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
    match config.method.name {
        MethodChoice::And
        | MethodChoice::Anchorhood
        | MethodChoice::Instance
        | MethodChoice::SimClr
        | MethodChoice::SimSiam
        | MethodChoice::Byol
        | MethodChoice::Supervised => Ok(()),
        method @ MethodChoice::NnClr => Err(TrainError::NotTogether { method, ranks }),
    }
}

/// This process's part of pictures.
pub(crate) fn own_pictures(device: &Device, pictures: &Pictures) -> Pictures {
    let part = device.communicator().part(pictures.len());
    match part.len() == pictures.len() {
        true => pictures.clone(),
        false => pictures.subset(&part.collect::<Vec<_>>()),
    }
}

/// Refuses processes that were not given the same.
fn agree(device: &Device, config: &RunConfig, data: &Dataset) -> Result<(), TrainError> {
    let together = device.communicator();
    if together.is_single() {
        return Ok(());
    }
    let all = texts_of_all(together, &facts(device, config, data))?;
    let mut others = (1..).zip(&all[1..]);
    let difference = |(rank, text): (usize, &String)| {
        let both = all[0].lines().zip(text.lines());
        let (first, other) = both.into_iter().find(|(a, b)| a != b)?;
        let (what, first) = first.split_once('\t')?;
        let (_, other) = other.split_once('\t')?;
        Some(TrainError::Disagree {
            what: what.into(),
            first: first.into(),
            rank,
            other: other.into(),
        })
    };
    others.find_map(difference).map_or(Ok(()), Err)
}

/// A line for each thing that must be the same: its name, a tab, its value.
fn facts(device: &Device, config: &RunConfig, data: &Dataset) -> String {
    let test = data.test.as_ref().map_or(0, |t| t.pictures.len());
    let kind = match (device.is_host(), config.machine.precision) {
        (true, _) => "a CPU".into(),
        (false, PrecisionChoice::Bf16) => "a GPU in bf16".into(),
        (false, precision) => format!("a GPU in {precision}"),
    };
    let mut facts = vec![
        ("version".into(), VERSION.into()),
        (
            "pictures to train on".into(),
            data.train.pictures.len().to_string(),
        ),
        ("pictures to test on".into(), test.to_string()),
        ("device".into(), kind),
    ];
    facts.extend(config.decisive());
    let line = |(name, value): (String, String)| format!("{name}\t{}\n", value.replace('\n', " "));
    facts.into_iter().map(line).collect()
}

/// Every process's text, in rank order.
fn texts_of_all(together: &Communicator, own: &str) -> Result<Vec<String>, TrainError> {
    let mut longest = [own.len() as f64];
    together.max_f64(&mut longest)?;
    let each = longest[0] as usize;
    let mut padded = own.as_bytes().to_vec();
    padded.resize(each, b'\n');
    let mut all = vec![0_u8; together.ranks() * each];
    together.gather(&padded, &mut all)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_string();
    Ok(all.chunks(each.max(1)).map(text).collect())
}

/// Whether any process says so.
pub(crate) fn any(together: &Communicator, here: bool) -> Result<bool, TrainError> {
    let mut flag = [f64::from(u8::from(here))];
    together.max_f64(&mut flag)?;
    Ok(flag[0] > 0.0)
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
    let mut found = [0.0; 5];
    if together.is_first() {
        let f = judge()?;
        found = [
            f.pictures as f64,
            f.agreement,
            f.found,
            f.effective_rank,
            f.uniformity,
        ];
    }
    together.broadcast(&mut found, 0)?;
    let [pictures, agreement, found, effective_rank, uniformity] = found;
    Ok(LabelFree {
        pictures: pictures as usize,
        agreement,
        found,
        effective_rank,
        uniformity,
    })
}
