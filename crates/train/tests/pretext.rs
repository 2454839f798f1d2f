//! Methods that learn by a pretext task learn it: better than a guess, within seconds, and without collapse.

use std::sync::atomic::AtomicBool;

use anchorhood_engine::{Device, Precision};
use anchorhood_models::Architecture;
use anchorhood_train::{Event, MethodChoice, Outcome, Preset, PretextMeasured, RunDir, train};

/// What a few epochs on small pictures tell of the task, epoch after epoch.
fn told(
    device: &Device,
    method: MethodChoice,
    architecture: Architecture,
    epochs: usize,
) -> Vec<PretextMeasured> {
    let mut config = Preset::Quick.config_for("shapes", method);
    config.data.shapes_train = 600;
    config.data.shapes_test = 30;
    config.data.size = Some(16);
    config.network.architecture = architecture;
    config.network.width = 4;
    config.training.epochs = epochs;
    config.training.batch = 20;
    config.method.clusters = 10;
    config.evaluation.every = epochs;
    let data = anchorhood_data::open("shapes", &config.data.load_options(0)).unwrap();
    let config = config.fitted(&data).unwrap();
    let runs = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
    let mut told = vec![];
    let mut observer = |event: &Event| {
        if let Event::Pretext(figures) = event {
            told.push(figures.clone());
        }
    };
    let stop = AtomicBool::new(false);
    let outcome = train(device, &mut dir, &data, &mut observer, &stop).unwrap();
    assert!(matches!(outcome, Outcome::Finished(_)));
    assert_eq!(told.len(), epochs, "{method}");
    told
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

/// A classifier that is drawn anew every epoch is right more often than the largest cluster would be, and clusters neither run
/// together nor are found anew by chance.
fn clusters_are_told_apart(device: &Device) {
    for network in NETWORKS {
        let told = told(device, MethodChoice::DeepCluster, network, 6);
        let (accuracy, chance) = figure(&told, "accuracy");
        println!("{network}: {accuracy:?}, by chance {chance:?}");
        let (last, chance) = (accuracy[accuracy.len() - 1], chance.unwrap());
        assert!(last > chance + 0.03, "{last} for {chance}");
        let largest = figure(&told, "largest cluster").0;
        assert!(largest.iter().all(|share| *share < 0.25), "{largest:?}");
        let used = figure(&told, "clusters in use").0;
        assert!(used.iter().all(|share| *share > 0.9), "{used:?}");
        let information = figure(&told, "mutual information").0;
        println!("{information:?}, {largest:?}, {used:?}");
        assert_eq!(information[0], 0.0, "nothing was before");
        assert!(information[5] > 0.2, "{information:?}");
    }
}

#[test]
fn deepcluster_tells_its_clusters_apart() {
    clusters_are_told_apart(&Device::cpu(2));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn pretext_tasks_are_learnt_on_cuda() {
    for precision in [Precision::F32, Precision::Bf16] {
        let device = Device::cuda(0, precision).unwrap();
        clusters_are_told_apart(&device);
    }
}
