//! Is there memory for it? Found out before anything is built: on the host, an allocation that
//! fails ends the process, and one that does not may end it later. A GPU says itself what it has
//! not.

use crate::methods::Setup;
use anchorhood_data::{Dataset, HostMemory, host_memory};
use anchorhood_engine::{Device, Error, Fits, Graph, NetworkOptions};

use crate::{RunConfig, TrainError, TrainingSet, embedding_graph};

/// Refuses a network that the host has no memory for, beside so many other bytes for the pictures'
/// features.
pub fn check_room(
    device: &Device,
    graph: &Graph,
    options: &NetworkOptions,
    rows: usize,
) -> Result<(), Error> {
    if device.is_host() {
        within(host_memory(), options.batch, rows, &of_network(graph, options))
    } else {
        Ok(())
    }
}

/// Bytes of a network for batches of any size.
fn of_network(graph: &Graph, options: &NetworkOptions) -> impl Fn(usize) -> Result<usize, Error> {
    |batch| {
        let options = options.clone();
        NetworkOptions { batch, ..options }.memory_bytes(graph)
    }
}

/// The same for all that a run needs: what it would be built from is looked at, and nothing is
/// built.
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
    if !device.is_host() {
        return Ok(());
    }
    let setup = config.setup(device, graph, set);
    let memory_bytes = config.method.name.memory_bytes;
    let of_batch = |batch| Ok(memory_bytes(&Setup { batch, ..setup }, config)?.0);
    let (_, of_each) = memory_bytes(&setup, config)?;
    let own = device.communicator().part(setup.pictures).len();
    let rows = own.saturating_mul(of_each);
    Ok(within(host_memory(), setup.batch, rows, &of_batch)?)
}

/// Refuses what needs more than the host has: for a batch by what `of_batch` says of batches, and
/// for all pictures so many other bytes.
fn within(
    host: HostMemory,
    batch: usize,
    rows: usize,
    of_batch: &dyn Fn(usize) -> Result<usize, Error>,
) -> Result<(), Error> {
    let (network, free) = (of_batch(batch)?, host.free as usize);
    let asked = network.saturating_add(rows);
    if asked <= free {
        return Ok(());
    }
    let one = of_batch(1)?;
    let each = network.saturating_sub(one) / (batch - 1).max(1);
    let fits = if network <= free {
        Fits::Rows { percent: ((free - network) as u128 * 100 / rows.max(1) as u128) as u8 }
    } else {
        Fits::Batch {
            pictures: match free.checked_sub(one.saturating_add(rows)) {
                Some(left) => 1 + left / each.max(1),
                None => 0,
            },
            halved: false,
        }
    };
    Err(Error::Memory {
        what: format!("a network and its memory for batches of {batch}"),
        asked,
        free,
        total: host.total as usize,
        fits: Some(fits),
    })
}

#[cfg(test)]
mod tests {
    use crate::methods::{ANCHORHOOD, METHODS, NNCLR, StateTensor};
    use anchorhood_models::RESNET10;

    use super::*;
    use crate::{Preset, build_method};

    fn refused(config: &RunConfig, free: u64, rows: usize) -> Option<(usize, Option<Fits>)> {
        let graph = embedding_graph(config, 32).unwrap();
        let options = NetworkOptions::new(config.training.batch);
        let total = free;
        let of_batch = of_network(&graph, &options);
        match within(HostMemory { free, total }, options.batch, rows, &of_batch) {
            Ok(()) => None,
            Err(Error::Memory { asked, fits, .. }) => Some((asked, fits)),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn what_is_estimated_is_what_a_network_takes() {
        let config = Preset::Quick.config("shapes");
        let graph = embedding_graph(&config, 32).unwrap();
        for optimiser in
            [anchorhood_engine::Optimiser::sgd(), anchorhood_engine::Optimiser::adam_w()]
        {
            let options = NetworkOptions::new(32).with_passes(2).with_optimiser(optimiser);
            let estimate = options.memory_bytes(&graph).unwrap() as f64;
            let network = Device::cpu(1).network(&graph, &options).unwrap();
            let ratio = network.memory_bytes() as f64 / estimate;
            assert!((0.9..1.2).contains(&ratio), "{ratio}");
        }
    }

    /// Heads, momentum copies, and what a method has of every picture.
    #[test]
    fn what_is_estimated_is_what_a_method_takes() {
        let device = Device::cpu(1);
        let mut narrow = vec![];
        for method in METHODS.all() {
            let mut config = Preset::Paper.config_for("shapes", method);
            config.network.width = 8;
            config.network.architecture = &RESNET10;
            config.training.batch = 16;
            config.method.projector_width = config.method.projector_width.min(512);
            config.method.predictor_width = 512;
            config.data.shapes_train = 4000;
            config.data.shapes_test = 10;
            narrow.push(config);
        }
        let mut momentum = narrow[1].clone();
        assert_eq!(momentum.method.name, &ANCHORHOOD);
        momentum.method.momentum_rows = true;
        momentum.method.predictor = true;
        narrow.push(momentum);
        let data = anchorhood_data::open("shapes", &narrow[0].data.load_options(0)).unwrap();
        for config in narrow {
            let config = config.fitted(&data).unwrap();
            let set = TrainingSet::of(&data);
            let graph = embedding_graph(&config, 32).unwrap();
            let setup = config.setup(&device, &graph, &set);
            let (networks, of_each) = (config.method.name.memory_bytes)(&setup, &config).unwrap();
            let mut method = build_method(&device, &config, &data).unwrap();
            let (mut built, mut held) = (0, 0);
            for (_, network) in method.networks() {
                let options = NetworkOptions {
                    passes: network.passes(),
                    input_gradient: network.input_gradient().is_ok(),
                    ..setup.options(network.batch())
                };
                built += options.memory_bytes(network.graph()).unwrap();
                held += network.memory_bytes();
            }
            let case = format!("{} {}", config.method.name, config.method.momentum_rows);
            assert!(networks <= held, "{case}: {networks} of {held}");
            // What tiles and parts of pictures are cut into is no network.
            let cut = match config.method.name.name {
                "jigsaw" | "context" | "counting" => config.method.views_of_a_picture(),
                _ => 0,
            };
            let cut = 4 * cut * setup.batch * set.pictures.picture_len();
            assert_eq!(networks, built + cut, "{case}");
            // Rows of numbers that are kept of all pictures, of which the rest is not there yet.
            let state = method.state(&device).unwrap();
            let of_pictures = |t: &&StateTensor| t.shape[0] == 4000;
            let rows = state.tensors.iter().filter(of_pictures);
            let rows: usize = rows.map(|t| t.shape[1..].iter().product::<usize>()).sum();
            assert!(4 * rows <= of_each, "{case}: {rows} of {of_each}");
            if config.method.name == &NNCLR {
                assert_eq!(4 * rows, of_each);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        let mut config = Preset::Quick.config("shapes");
        assert_eq!(refused(&config, 1 << 30, 1 << 20), None);
        let (_, fits) = refused(&config, 1 << 30, 2 << 30).unwrap();
        assert!(matches!(fits, Some(Fits::Rows { percent: 40..=50 })), "{fits:?}");
        config.training.batch = 1 << 20;
        let (_, fits) = refused(&config, 1 << 30, 0).unwrap();
        let Some(Fits::Batch { pictures, .. }) = fits else { panic!("{fits:?}") };
        config.training.batch = pictures;
        assert_eq!(refused(&config, 1 << 30, 0), None, "a batch of {pictures}");
        config.network.width = 4096;
        config.training.batch = 32;
        let (asked, fits) = refused(&config, 20 << 30, 0).unwrap();
        assert!(asked > 100 << 30, "{asked}");
        assert_eq!(fits, Some(Fits::Batch { pictures: 0, halved: false }));
    }
}
