//! The bytes of a checkpoint: a container of [`anchorhood_storage`], that is safetensors with
//! checksums, format version 2.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | a weight or statistic of the embedding network, by torchvision's name | F32 | PyTorch's |
//! | the same of a head, after its namespace and a dot | F32 | PyTorch's |
//! | `optimiser.SLOT.NAME`: `momentum`, or `first` and `second`, of NAME | F32 | the weight's |
//! | `memory.bank` | F32 | rows × features |
//! | `memory.neighbours` | U32 | rows × k (from round 1 on) |
//! | `memory.anchors` | U8, 0 or 1 | rows (from round 1 on) |
//! | `memory.entropy` | F32 | rows (from round 1 on) |
//! | `method.NAME`: what else a method keeps | any | any |
//!
//! Metadata: `format` (anchorhood-checkpoint), `program`, `method`, `config` (TOML), `standing`
//! (JSON), `network` (JSON: which, and the names of its tensors and slots in its own order, since
//! the container sorts), `heads` (JSON: the same of each namespace), `judged_layer`,
//! `preprocessing` (JSON), `dtype`, `rows` (JSON: the memory's first row, and how many there are of
//! all), `fingerprint`. What differs between identical runs is in the clock: seconds, and the
//! length of `metrics.jsonl`, which tells seconds.
//!
//! Nothing is copied to be written.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::discovery::Neighbourhoods;
use crate::methods::{StateDict, StateTensor, Values, neighbourhoods_of, remembered_pictures};
use anchorhood_storage::{Container, Dtype, NamedTensor, OpenContainer};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Checkpoint, Head, InputForm, Slot, Tensor, fingerprint};
use crate::{NetworkConfig, RunConfig, Standing};

const FORMAT: &str = "anchorhood-checkpoint";
/// Type of weights.
const DTYPE: &str = "F32";
const OPTIMISER: &str = "optimiser.";
const MEMORY: &str = crate::methods::BY_PICTURE;
const BANK: &str = "memory.bank";
const METHOD: &str = "method.";

/// Names of a network's tensors and of its optimiser's slots, in the network's own order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Names {
    order: Vec<String>,
    slots: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct NetworkField {
    #[serde(flatten)]
    network: NetworkConfig,
    #[serde(flatten)]
    names: Names,
}

/// One of the method's other networks.
#[derive(Serialize, Deserialize)]
struct HeadField {
    namespace: String,
    #[serde(flatten)]
    names: Names,
}

/// Files are little endian, as every machine this runs on is.
pub(super) fn bytes<T: bytemuck::NoUninit>(values: &[T]) -> &[u8] {
    const { assert!(cfg!(target_endian = "little")) }
    bytemuck::cast_slice(values)
}

/// Which of so many rows are wanted.
pub(super) type RowsOf<'a> = &'a dyn Fn(usize) -> Range<usize>;

/// What is to be written; its tensors are the checkpoint's own. Those that have a row for each
/// picture say so of all, though only some be here. The error is a clause.
pub(super) fn container(checkpoint: &Checkpoint) -> Result<Container<'_>, String> {
    let mut tensors = network_tensors("", &checkpoint.weights, &checkpoint.slots);
    for head in &checkpoint.heads {
        let namespace = format!("{}.", head.namespace);
        if [OPTIMISER, MEMORY, METHOD].contains(&namespace.as_str()) {
            return Err(format!("no network can be called {}", head.namespace));
        }
        tensors.extend(network_tensors(&namespace, &head.weights, &head.slots));
    }
    let pictures = checkpoint.rows[1] as usize;
    let state = checkpoint.state.tensors.iter();
    tensors.extend(state.map(|t| state_tensor(t, pictures)));
    Ok(Container { metadata: metadata(checkpoint), clock: clock(&checkpoint.standing), tensors })
}

fn network_tensors<'a>(
    namespace: &str,
    weights: &'a [Tensor],
    slots: &'a [Slot],
) -> Vec<NamedTensor<'a>> {
    let named = |before: String, t: &'a Tensor| {
        let name = format!("{before}{namespace}{}", t.name);
        NamedTensor::new(&name, Dtype::F32, &t.shape, bytes(&t.values))
    };
    let weights = weights.iter().map(|t| named(String::new(), t));
    let slots = slots.iter().flat_map(|slot| {
        let tensors = slot.tensors.iter();
        tensors.map(|t| named(format!("{OPTIMISER}{}.", slot.name), t))
    });
    weights.chain(slots).collect()
}

fn state_tensor(tensor: &StateTensor, pictures: usize) -> NamedTensor<'_> {
    let name = if tensor.name.starts_with(MEMORY) {
        tensor.name.clone()
    } else {
        format!("{METHOD}{}", tensor.name)
    };
    let (dtype, data) = match &tensor.values {
        Values::F32(values) => (Dtype::F32, bytes(values)),
        Values::U32(values) => (Dtype::U32, bytes(values)),
        Values::U8(values) => (Dtype::U8, &values[..]),
    };
    let mut shape = tensor.shape.clone();
    if let (true, Some(rows)) = (tensor.is_by_picture(), shape.first_mut()) {
        *rows = pictures;
    }
    NamedTensor::new(&name, dtype, &shape, data)
}

/// Whether a tensor of a file has a row for each picture.
pub(super) fn is_by_picture(name: &str) -> bool {
    name.starts_with(MEMORY)
}

fn metadata(checkpoint: &Checkpoint) -> BTreeMap<String, String> {
    let head =
        |h: &Head| HeadField { namespace: h.namespace.clone(), names: names(&h.weights, &h.slots) };
    let heads: Vec<HeadField> = checkpoint.heads.iter().map(head).collect();
    let network = NetworkField {
        network: checkpoint.config.network.clone(),
        names: names(&checkpoint.weights, &checkpoint.slots),
    };
    let model = fingerprint(&checkpoint.config.network, &checkpoint.input, &checkpoint.weights);
    let fields = [
        ("format", FORMAT.into()),
        ("program", checkpoint.program.clone()),
        ("method", checkpoint.method.clone()),
        ("config", checkpoint.config.to_toml()),
        ("standing", json(&checkpoint.standing)),
        ("network", json(&network)),
        ("heads", json(&heads)),
        ("judged_layer", checkpoint.judged_layer.clone()),
        ("dtype", DTYPE.into()),
        ("rows", json(&[0, checkpoint.rows[1]])),
        ("preprocessing", json(&checkpoint.input)),
        ("fingerprint", model),
    ];
    fields.into_iter().map(|(k, v)| (k.into(), v)).collect()
}

fn names(weights: &[Tensor], slots: &[Slot]) -> Names {
    Names {
        order: weights.iter().map(|t| t.name.clone()).collect(),
        slots: slots.iter().map(|slot| slot.name.clone()).collect(),
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain values become JSON")
}

fn clock(standing: &Standing) -> String {
    let (seconds, epoch) = (standing.seconds, standing.epoch_seconds);
    let metrics = standing.metrics_bytes;
    format!("seconds={seconds:?} epoch_seconds={epoch:?} metrics_bytes={metrics}")
}

/// Takes up what the clock tells.
fn read_clock(clock: &str, standing: &mut Standing) -> Option<()> {
    let field = |name: &str| {
        let mut pairs = clock.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let seconds = |name: &str| {
        let value = field(name)?.parse().ok();
        value.filter(|seconds: &f64| seconds.is_finite())
    };
    standing.seconds = seconds("seconds")?;
    standing.epoch_seconds = seconds("epoch_seconds")?;
    standing.metrics_bytes = field("metrics_bytes")?.parse().ok()?;
    Some(())
}

/// A file's own fields.
struct Fields<'a>(&'a BTreeMap<String, String>);

impl Fields<'_> {
    fn text(&self, name: &str) -> Result<&str, String> {
        let value = self.0.get(name).map(String::as_str);
        value.ok_or_else(|| format!("it has no `{name}` (it may be of another program)"))
    }

    fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, String> {
        serde_json::from_str(self.text(name)?).map_err(|e| format!("its {name}: {e}"))
    }
}

/// What an open file holds, every byte of it checked before anything is believed. The reason is a
/// clause: "the file ends early". Where some rows are wanted, no others are read or checked of what
/// has a row for each picture.
pub(super) fn decode(file: &OpenContainer, wanted: Option<RowsOf>) -> Result<Checkpoint, String> {
    let wanted = match wanted {
        Some(wanted) => wanted,
        None => {
            file.check_all().map_err(|e| e.problem.to_string())?;
            &|pictures| 0..pictures
        }
    };
    let checkpoint = read(file, wanted)?;
    check(&checkpoint)?;
    Ok(checkpoint)
}

/// The fields of a file that is a checkpoint.
fn fields_of(file: &OpenContainer) -> Result<Fields<'_>, String> {
    let fields = Fields(file.metadata());
    if fields.text("format")? == FORMAT {
        Ok(fields)
    } else {
        Err("it is of another program".into())
    }
}

/// The neighbourhoods alone, of all pictures.
pub(super) fn neighbourhoods(file: &OpenContainer) -> Result<Option<Neighbourhoods>, String> {
    let [_, pictures]: [u64; 2] = fields_of(file)?.json("rows")?;
    let mut state = StateDict::default();
    for name in file.names().filter(|n| n.starts_with(MEMORY) && *n != BANK) {
        let (shape, values) = any(file, name)?;
        state.push(name, shape, values);
    }
    let found = neighbourhoods_of(&state, [0, pictures as usize]).map_err(|e| e.to_string())?;
    match &found {
        Some(found) if found.len() as u64 != pictures => Err(format!(
            "its neighbourhoods are of {} pictures, and there are {pictures}",
            found.len()
        )),
        Some(found) if found.entropy().iter().any(|e| !e.is_finite()) => {
            Err("its entropies are not all finite numbers".into())
        }
        _ => Ok(found),
    }
}

fn read(file: &OpenContainer, wanted: RowsOf) -> Result<Checkpoint, String> {
    let fields = fields_of(file)?;
    let config = RunConfig::from_toml(fields.text("config")?, "its configuration");
    let config = config.map_err(|e| e.to_string())?;
    config.check().map_err(|e| e.to_string())?;
    let mut standing = fields.json("standing")?;
    read_clock(file.clock(), &mut standing).ok_or("its clock does not tell its times")?;
    let NetworkField { network, names } = fields.json("network")?;
    if network != config.network {
        return Err("its network is not the one of its settings".into());
    }
    let dtype = fields.text("dtype")?;
    if dtype != DTYPE {
        return Err(format!("its weights are {dtype}, not {DTYPE}"));
    }
    let (weights, slots) = read_network(file, "", &names)?;
    let heads: Vec<HeadField> = fields.json("heads")?;
    let [first, pictures]: [u64; 2] = fields.json("rows")?;
    if first != 0 {
        return Err(format!("it begins with row {first} of its memory"));
    }
    let wanted = wanted(pictures as usize);
    Ok(Checkpoint {
        config,
        standing,
        program: fields.text("program")?.into(),
        method: fields.text("method")?.into(),
        judged_layer: fields.text("judged_layer")?.into(),
        input: fields.json("preprocessing")?,
        rows: [wanted.start as u64, pictures],
        weights,
        slots,
        heads: read_heads(file, heads)?,
        state: state(file, pictures as usize, &wanted)?,
    })
}

/// A network's tensors, whose names begin alike, and those of its slots, whose names begin with
/// `optimiser` and the slot's.
fn read_network(
    file: &OpenContainer,
    namespace: &str,
    names: &Names,
) -> Result<(Vec<Tensor>, Vec<Slot>), String> {
    let one = |before: &str, name: &String| {
        let (shape, values) = floats(file, &format!("{before}{namespace}{name}"))?;
        let name = name.clone();
        Ok::<_, String>(Tensor { name, shape, values })
    };
    let weights: Result<_, _> = names.order.iter().map(|name| one("", name)).collect();
    let mut slots = vec![];
    for slot in &names.slots {
        let before = format!("{OPTIMISER}{slot}.");
        // Statistics have none.
        let there = |name: &&String| file.shape(&format!("{before}{namespace}{name}")).is_some();
        let held = names.order.iter().filter(there);
        let tensors: Result<_, _> = held.map(|name| one(&before, name)).collect();
        slots.push(Slot { name: slot.clone(), tensors: tensors? });
    }
    Ok((weights?, slots))
}

fn read_heads(file: &OpenContainer, heads: Vec<HeadField>) -> Result<Vec<Head>, String> {
    let head = |HeadField { namespace, names }: HeadField| {
        let before = format!("{namespace}.");
        let (weights, slots) = read_network(file, &before, &names)?;
        Ok(Head { namespace, weights, slots })
    };
    heads.into_iter().map(head).collect()
}

/// Everything under the method's own names; of so many pictures the wanted ones.
fn state(
    file: &OpenContainer,
    pictures: usize,
    wanted: &Range<usize>,
) -> Result<StateDict, String> {
    let mut state = StateDict::default();
    for name in file.names() {
        let kept = if name.starts_with(MEMORY) { Some(name) } else { name.strip_prefix(METHOD) };
        if let Some(kept) = kept {
            let (shape, values) = if is_by_picture(name) {
                some_rows(file, name, pictures, wanted)?
            } else {
                any(file, name)?
            };
            state.push(kept, shape, values);
        }
    }
    Ok(state)
}

/// What can be said of a checkpoint without knowing its run.
fn check(checkpoint: &Checkpoint) -> Result<(), String> {
    let (at, training) = (checkpoint.standing.position, &checkpoint.config.training);
    if at.epoch >= training.epochs || at.round > training.rounds + 1 {
        return Err(format!("it stands at {at}, beyond its own run"));
    }
    if !checkpoint.input.is_possible() {
        return Err(format!("its input cannot be: {:?}", checkpoint.input));
    }
    check_memory(checkpoint)?;
    let ([first, total], here) = (checkpoint.rows, checkpoint.pictures() as u64);
    match first.checked_add(here) {
        Some(end) if end <= total => Ok(()),
        _ => Err(format!("its memory is {here} rows from {first} on, of {total}")),
    }
}

fn check_memory(checkpoint: &Checkpoint) -> Result<(), String> {
    let (state, features) = (&checkpoint.state, checkpoint.config.network.features);
    let memory = state.get(BANK);
    if let Some(StateTensor { shape, .. }) = memory
        && !matches!(shape[..], [_, dim] if dim == features)
    {
        return Err(format!("its memory is {shape:?}, not pictures × {features} features"));
    }
    let rows = checkpoint.rows.map(|n| n as usize);
    let found = neighbourhoods_of(state, rows).map_err(|e| e.to_string())?;
    let remembered = remembered_pictures(state);
    match found {
        Some(found) if found.len() != remembered => Err(format!(
            "its neighbourhoods are of {} pictures, its memory of {remembered}",
            found.len()
        )),
        Some(_) | None => Ok(()),
    }
}

fn words(data: &[u8]) -> impl Iterator<Item = [u8; 4]> {
    let (words, _) = data.as_chunks::<4>();
    words.iter().copied()
}

fn floats(file: &OpenContainer, name: &str) -> Result<(Vec<usize>, Vec<f32>), String> {
    match any(file, name)? {
        (shape, Values::F32(values)) => Ok((shape, values)),
        (_, Values::U32(_) | Values::U8(_)) => Err(format!("its {name} is not {DTYPE}")),
    }
}

/// A tensor of whichever kind it is.
fn any(file: &OpenContainer, name: &str) -> Result<(Vec<usize>, Values), String> {
    let tensor = file.tensor(name).map_err(|e| e.problem.to_string())?;
    let values = values(name, tensor.dtype, tensor.data)?;
    Ok((tensor.shape.to_vec(), values))
}

/// Some rows of a tensor that has one for each of so many pictures.
fn some_rows(
    file: &OpenContainer,
    name: &str,
    pictures: usize,
    wanted: &Range<usize>,
) -> Result<(Vec<usize>, Values), String> {
    let found = file.shape(name);
    let (dtype, shape) = found.ok_or_else(|| format!("it has no {name}"))?;
    if shape.first() != Some(&pictures) {
        return Err(format!("its {name} is {shape:?}, and there are {pictures} pictures"));
    }
    let row = dtype.bitsize() / 8 * shape[1..].iter().product::<usize>();
    let data = file.bytes_of(name, wanted.start * row..wanted.end * row);
    let values = values(name, dtype, data.map_err(|e| e.problem.to_string())?)?;
    let shape = [&[wanted.len()], &shape[1..]].concat();
    Ok((shape, values))
}

fn values(name: &str, dtype: Dtype, data: &[u8]) -> Result<Values, String> {
    Ok(match dtype {
        Dtype::F32 => Values::F32(words(data).map(f32::from_le_bytes).collect()),
        Dtype::U32 => Values::U32(words(data).map(u32::from_le_bytes).collect()),
        Dtype::U8 => Values::U8(data.to_vec()),
        other => return Err(format!("its {name} is {other:?}")),
    })
}

impl InputForm {
    /// Whether a picture can have it: some pixels, means and positive deviations that are numbers.
    pub fn is_possible(&self) -> bool {
        let numbers = self.mean.iter().chain(&self.std).all(|v| v.is_finite());
        let positive = self.std.iter().all(|v| *v > 0.0);
        self.version == 1 && (1..=4096).contains(&self.size) && numbers && positive
    }
}
