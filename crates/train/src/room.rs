//! Is there memory for it? Found out before anything is built: on the host, an allocation that fails ends the process, and one
//! that does not may end it later. A GPU says itself what it has not.

use anchorhood_data::{Dataset, HostMemory, host_memory};
use anchorhood_engine::{Device, Error, Fits, Graph, NetworkOptions};

use crate::{MethodChoice, MethodKind, RunConfig, TrainError, TrainingSet, embedding_graph};

/// Refuses a network that the host has no memory for, beside so many other bytes for the pictures' features.
pub fn check_room(
    device: &Device,
    graph: &Graph,
    options: &NetworkOptions,
    rows: usize,
) -> Result<(), Error> {
    match device.is_host() {
        true => within(host_memory(), graph, options, rows),
        false => Ok(()),
    }
}

/// The same for all that a run needs: what it would be built from is looked at, and nothing is built.
pub fn check_room_to_train(
    device: &Device,
    config: &RunConfig,
    data: &Dataset,
) -> Result<(), TrainError> {
    let set = TrainingSet::of(data);
    let graph = embedding_graph(config, set.pictures.height())?;
    check_room_of(device, config, &set, &graph)
}

pub(crate) fn check_room_of(
    device: &Device,
    config: &RunConfig,
    set: &TrainingSet,
    graph: &Graph,
) -> Result<(), TrainError> {
    let optimiser = config.training.optimiser();
    let views = config.method.views_of_a_picture();
    let together = device.communicator();
    let batch = together.part(config.batch_of(set)).len();
    let batch = batch.saturating_mul(views);
    let options = NetworkOptions::new(batch).with_optimiser(optimiser);
    let pictures = together.part(set.pictures.len()).len();
    // A row of the memory, and the number and the likeness of each neighbour.
    let remembered = |dim| {
        let each = 4 * dim + 8 * config.discovery.neighbours;
        pictures.saturating_mul(each)
    };
    let (method, features) = (config.method.name, config.network.features);
    let rows = match method.kind() {
        MethodKind::Memory => remembered(features),
        MethodKind::Views if method.discovers() => remembered(config.method.projector_features),
        MethodKind::Supervised => 4 * pictures,
        // All features, and the same whitened, or the points they are to go to.
        MethodKind::Targets if method != MethodChoice::Counting => {
            pictures.saturating_mul(8 * features)
        }
        MethodKind::Views | MethodKind::Targets | MethodKind::Guessing => 0,
    };
    Ok(check_room(device, graph, &options, rows)?)
}

fn within(
    host: HostMemory,
    graph: &Graph,
    options: &NetworkOptions,
    rows: usize,
) -> Result<(), Error> {
    let of_batch = |batch| {
        NetworkOptions {
            batch,
            ..options.clone()
        }
        .memory_bytes(graph)
    };
    let (network, free) = (of_batch(options.batch)?, host.free as usize);
    let asked = network.saturating_add(rows);
    if asked <= free {
        return Ok(());
    }
    let one = of_batch(1)?;
    let each = network.saturating_sub(one) / (options.batch - 1).max(1);
    let fits = match network <= free {
        true => Fits::Rows {
            percent: ((free - network) as u128 * 100 / rows.max(1) as u128) as u8,
        },
        false => Fits::Batch {
            pictures: match free.checked_sub(one.saturating_add(rows)) {
                Some(left) => 1 + left / each.max(1),
                None => 0,
            },
            halved: false,
        },
    };
    Err(Error::Memory {
        what: format!("a network and its memory for batches of {}", options.batch),
        asked,
        free,
        total: host.total as usize,
        fits: Some(fits),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Preset;

    fn refused(config: &RunConfig, free: u64, rows: usize) -> Option<(usize, Option<Fits>)> {
        let graph = embedding_graph(config, 32).unwrap();
        let options = NetworkOptions::new(config.training.batch);
        let total = free;
        match within(HostMemory { free, total }, &graph, &options, rows) {
            Ok(()) => None,
            Err(Error::Memory { asked, fits, .. }) => Some((asked, fits)),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn what_is_estimated_is_what_a_network_takes() {
        let config = Preset::Quick.config("shapes");
        let graph = embedding_graph(&config, 32).unwrap();
        for optimiser in [
            anchorhood_engine::Optimiser::sgd(),
            anchorhood_engine::Optimiser::adam_w(),
        ] {
            let options = NetworkOptions::new(32)
                .with_passes(2)
                .with_optimiser(optimiser);
            let estimate = options.memory_bytes(&graph).unwrap() as f64;
            let network = Device::cpu(1).network(&graph, &options).unwrap();
            let ratio = network.memory_bytes() as f64 / estimate;
            assert!((0.9..1.2).contains(&ratio), "{ratio}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        let mut config = Preset::Quick.config("shapes");
        assert_eq!(refused(&config, 1 << 30, 1 << 20), None);
        let (_, fits) = refused(&config, 1 << 30, 2 << 30).unwrap();
        assert!(
            matches!(fits, Some(Fits::Rows { percent: 40..=50 })),
            "{fits:?}"
        );
        config.training.batch = 1 << 20;
        let (_, fits) = refused(&config, 1 << 30, 0).unwrap();
        let Some(Fits::Batch { pictures, .. }) = fits else {
            panic!("{fits:?}")
        };
        config.training.batch = pictures;
        assert_eq!(refused(&config, 1 << 30, 0), None, "a batch of {pictures}");
        config.network.width = 4096;
        config.training.batch = 32;
        let (asked, fits) = refused(&config, 20 << 30, 0).unwrap();
        assert!(asked > 100 << 30, "{asked}");
        assert_eq!(
            fits,
            Some(Fits::Batch {
                pictures: 0,
                halved: false
            })
        );
    }
}
