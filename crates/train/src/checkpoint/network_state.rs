//! A network's numbers, out of a device and back: weights, running statistics, and the optimiser's
//! slots.

use std::path::Path;

use anchorhood_engine::{Graph, Network, Parameter, Role, Tensors};

use super::CheckpointError;

/// A named tensor in PyTorch's layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// As torchvision calls it.
    pub name: String,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Vec<f32>,
}

/// One slot of the optimiser's state: a tensor for each weight that is trained.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// `momentum` of SGD and LARS; `first` and `second` of AdamW: the means of the gradient and of
    /// its square.
    pub name: String,
    /// In the network's order.
    pub tensors: Vec<Tensor>,
}

/// What the slots of an optimiser that has so many are called.
fn slot_names(slots: usize) -> Vec<String> {
    match slots {
        1 => vec!["momentum".into()],
        2 => vec!["first".into(), "second".into()],
        n => (0..n).map(|slot| format!("slot-{slot}")).collect(),
    }
}

/// All of a network's weights and slots, for a checkpoint.
pub fn tensors_of(network: &Network) -> Result<(Vec<Tensor>, Vec<Slot>), anchorhood_engine::Error> {
    let read = |what: Tensors, i: usize, p: &Parameter| {
        Ok::<_, anchorhood_engine::Error>(Tensor {
            name: p.name.clone(),
            shape: p.shape.clone(),
            values: network.read(what, i)?,
        })
    };
    let parameters = || network.graph().parameters().iter().enumerate();
    let weights: Result<_, _> = parameters().map(|(i, p)| read(Tensors::Values, i, p)).collect();
    let mut slots = vec![];
    for (slot, name) in slot_names(network.slots()).into_iter().enumerate() {
        let trained = parameters().filter(|(_, p)| p.role == Role::Weight);
        let tensors: Result<_, _> = trained.map(|(i, p)| read(Tensors::Slot(slot), i, p)).collect();
        slots.push(Slot { name, tensors: tensors? });
    }
    Ok((weights?, slots))
}

/// Gives a network a checkpoint's weights and running statistics, whose names and shapes must be
/// its own; `path` names the file in errors.
pub fn write_weights(
    network: &mut Network,
    weights: &[Tensor],
    path: &Path,
) -> Result<(), CheckpointError> {
    write_all(network, weights, None, path)
}

/// Refuses weights that a network of this graph does not have, before there is one: what a small
/// file promises may be more than memory holds. `path` names the file in errors.
pub fn check_weights(
    graph: &Graph,
    weights: &[Tensor],
    path: &Path,
) -> Result<(), CheckpointError> {
    let wanted = graph.parameters().iter().enumerate();
    let mut all = wanted.map(|(i, p)| matching(weights.get(i), p, path));
    all.try_for_each(|tensor| tensor.map(|_| ()))
}

/// Writes weights into a network and, where there are any to write, slots; `path` names the file in
/// errors.
pub(super) fn write_all(
    network: &mut Network,
    weights: &[Tensor],
    slots: Option<&[Slot]>,
    path: &Path,
) -> Result<(), CheckpointError> {
    let parameters = network.graph().parameters().to_vec();
    for (i, p) in parameters.iter().enumerate() {
        let tensor = matching(weights.get(i), p, path)?;
        network.write(Tensors::Values, i, &tensor.values)?;
    }
    let Some(slots) = slots else {
        return Ok(());
    };
    check_slots(network, slots, path)?;
    let trained = |i: &usize| parameters[*i].role == Role::Weight;
    for (number, slot) in slots.iter().enumerate() {
        for (place, i) in (0..parameters.len()).filter(trained).enumerate() {
            let tensor = matching(slot.tensors.get(place), &parameters[i], path)?;
            network.write(Tensors::Slot(number), i, &tensor.values)?;
        }
    }
    Ok(())
}

/// Refuses what another optimiser left.
fn check_slots(network: &Network, slots: &[Slot], path: &Path) -> Result<(), CheckpointError> {
    let ours = slot_names(network.slots());
    let theirs: Vec<&str> = slots.iter().map(|slot| slot.name.as_str()).collect();
    if ours == theirs {
        return Ok(());
    }
    Err(CheckpointError::Mismatch {
        path: path.into(),
        reason: format!(
            "it holds the optimiser's {}, this run's has {}",
            theirs.join(" and "),
            ours.join(" and ")
        ),
    })
}

fn matching<'a>(
    tensor: Option<&'a Tensor>,
    wanted: &Parameter,
    path: &Path,
) -> Result<&'a Tensor, CheckpointError> {
    let wrong = |reason| CheckpointError::Mismatch { path: path.into(), reason };
    let (name, shape) = (&wanted.name, &wanted.shape);
    let tensor = tensor.ok_or_else(|| wrong(format!("it has no {name}")))?;
    if tensor.name != *name || tensor.shape != *shape {
        return Err(wrong(format!(
            "it holds {} {:?} where this network has {name} {shape:?}",
            tensor.name, tensor.shape
        )));
    }
    Ok(tensor)
}
