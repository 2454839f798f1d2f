//! Methods that learn by a pretext task learn it: better than a guess, within seconds, and without
//! collapse.

use std::sync::atomic::AtomicBool;

use anchorhood_engine::{Device, Precision};
use anchorhood_models::Architecture;
use anchorhood_train::{Event, MethodChoice, Outcome, Preset, PretextMeasured, RunDir, train};

/// What a few epochs on small pictures tell of the task, epoch after epoch, and their losses.
fn told(
    device: &Device,
    method: MethodChoice,
    architecture: Architecture,
    (epochs, rate): (usize, f64),
) -> (Vec<PretextMeasured>, Vec<f64>) {
    let mut config = Preset::Quick.config_for("shapes", method);
    config.data.shapes_train = 600;
    config.data.shapes_test = 30;
    config.data.size = Some(16);
    config.network.architecture = architecture;
    config.network.width = 4;
    (config.training.epochs, config.training.learning_rate) = (epochs, rate);
    config.training.batch = 20;
    config.method.clusters = 10;
    config.evaluation.every = epochs;
    let data = anchorhood_data::open("shapes", &config.data.load_options(0)).unwrap();
    let config = config.fitted(&data).unwrap();
    let runs = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
    let (mut told, mut losses) = (vec![], vec![]);
    let mut observer = |event: &Event| match event {
        Event::Pretext(figures) => told.push(figures.clone()),
        Event::EpochEnded(epoch) => losses.push(epoch.loss),
        _ => {}
    };
    let stop = AtomicBool::new(false);
    let outcome = train(device, &mut dir, &data, &mut observer, &stop).unwrap();
    assert!(matches!(outcome, Outcome::Finished(_)));
    assert_eq!(told.len(), epochs, "{method}");
    (told, losses)
}

/// A figure of every epoch, and what a guess would reach in the last.
fn figure(told: &[PretextMeasured], name: &str) -> (Vec<f64>, Option<f64>) {
    let own = told.iter().flat_map(|p| &p.figures);
    let own: Vec<_> = own.filter(|f| f.name == name).collect();
    assert_eq!(own.len(), told.len(), "{name}: {told:?}");
    let chance = own.last().and_then(|f| f.chance);
    (own.iter().map(|f| f.share).collect(), chance)
}

const NETWORKS: [Architecture; 2] = [Architecture::ResNet18, Architecture::AlexNet];

/// A classifier that is drawn anew every epoch is right more often than always naming the largest
/// cluster, and clusters neither run together nor are found anew by chance.
fn clusters_are_told_apart(device: &Device) {
    for network in NETWORKS {
        let (told, _) = told(device, MethodChoice::DeepCluster, network, (8, 0.02));
        // Clusters and classifier are others in every epoch, and so is how hard they are to tell
        // apart: some epochs' mean is steady.
        let accuracy = told.iter().flat_map(|p| &p.figures);
        let accuracy = accuracy.filter(|f| f.name == "accuracy");
        let gains: Vec<f64> = accuracy.map(|f| f.share - f.chance.unwrap()).collect();
        let gain = gains[3..].iter().sum::<f64>() / 5.0;
        println!("{network}: {gains:?} over chance");
        assert!(gain > 0.04, "{gain} of {gains:?}");
        let largest = figure(&told, "largest cluster").0;
        assert!(largest.iter().all(|share| *share < 0.5), "{largest:?}");
        let used = figure(&told, "clusters in use").0;
        assert!(used.iter().all(|share| *share > 0.9), "{used:?}");
        let information = figure(&told, "mutual information").0;
        println!("{information:?}, {largest:?}, {used:?}");
        assert_eq!(information[0], 0.0, "nothing was before");
        assert!(information[7] > 0.2, "{information:?}");
    }
}

#[test]
fn deepcluster_tells_its_clusters_apart() {
    clusters_are_told_apart(&Device::cpu(1));
}

/// Features are nearer to their own points than those of a network that does not learn, whose
/// pictures are given near points all the same.
fn points_are_reached(device: &Device) {
    let reached = |network, rate| {
        let (told, losses) = told(device, MethodChoice::Nat, network, (7, rate));
        let (nearest, chance) = figure(&told, "own point nearest");
        println!("{network} at {rate:e}: {nearest:?}, by chance {chance:?}; {losses:?}");
        assert!(nearest[6] > 3.0 * chance.unwrap(), "{nearest:?}");
        -losses[6]
    };
    let still = reached(Architecture::ResNet18, 1e-30);
    for network in NETWORKS {
        let learnt = reached(network, 0.03);
        assert!(learnt > still + 0.03, "{learnt}, without learning {still}");
    }
}

#[test]
fn nat_reaches_its_points() {
    points_are_reached(&Device::cpu(1));
}

/// Quarters add up to their own picture rather than to another.
fn quarters_add_up(device: &Device) {
    for network in NETWORKS {
        let (told, _) = told(device, MethodChoice::Counting, network, (6, 0.003));
        let (accuracy, chance) = figure(&told, "accuracy");
        println!("{network}: {accuracy:?}, by chance {chance:?}");
        assert!(accuracy[5] > 0.57, "{accuracy:?}");
    }
}

#[test]
fn counting_adds_up() {
    quarters_add_up(&Device::cpu(1));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn pretext_tasks_are_learnt_on_cuda() {
    for precision in [Precision::F32, Precision::Bf16] {
        let device = Device::cuda(0, precision).unwrap();
        clusters_are_told_apart(&device);
        points_are_reached(&device);
        quarters_add_up(&device);
    }
}
