//! A run is trained and served by the libraries alone: its pictures, an upload, and where its
//! network looks.

use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use anchorhood_data::{Dataset, Pictures};
use anchorhood_engine::Device;
use anchorhood_serve::{Collection, Hearers, ServeOptions, Stop};
use anchorhood_train::{MethodSpec, Preset, RunConfig, RunDir, methods, train};

const SIDE: usize = 16;

fn pictures() -> Dataset {
    let bytes = (0..24 * SIDE * SIDE * 3).map(|i| (i * 31 % 251) as u8);
    let pictures = Pictures::new(SIDE, SIDE, bytes.collect()).unwrap();
    Dataset::new("mine", pictures)
}

fn trained(
    runs: &Path,
    data: &Dataset,
    method: &'static MethodSpec,
) -> (std::path::PathBuf, RunConfig) {
    let mut config = Preset::Quick.config_for("mine", method);
    config.network.width = 2;
    config.training.batch = 8;
    (config.training.epochs, config.training.rounds) = (1, 1);
    let config = config.fitted(data).unwrap();
    let mut run = RunDir::create(runs, "first", &config).unwrap();
    let never = AtomicBool::new(false);
    train(&Device::cpu(1), &mut run, data, &mut |_| {}, &never).unwrap();
    (run.path().into(), config)
}

fn got(address: SocketAddr, what: &str) -> Vec<u8> {
    let mut answer = ureq::get(format!("http://{address}{what}")).call().unwrap();
    let mut bytes = vec![];
    answer.body_mut().as_reader().read_to_end(&mut bytes).unwrap();
    bytes
}

/// One that remembers its pictures, and one whose pictures are embedded to be served.
#[test]
fn a_run_is_served_without_the_program() {
    for method in [&methods::AND, &methods::SIMCLR] {
        served(method);
    }
}

fn served(method: &'static MethodSpec) {
    let folder = tempfile::tempdir().unwrap();
    let data = pictures();
    let (run, config) = trained(folder.path(), &data, method);
    let collection =
        Collection::of_run(&Device::cpu(1), &run, data.train.clone(), &config).unwrap();
    assert!(collection.has_model());
    let options = ServeOptions { port: 0, ..ServeOptions::default() };
    let (stop, warnings) = (Stop::default(), Mutex::new(vec![]));
    let (tell, told) = mpsc::channel();
    std::thread::scope(|threads| {
        let end = stop.clone();
        threads.spawn(move || {
            let address = told.recv().unwrap();
            let run: serde_json::Value = serde_json::from_slice(&got(address, "/api/run")).unwrap();
            let looked = got(address, "/api/picture/3/attention");
            end.now();
            assert!(run.to_string().contains("first"), "{run}");
            let map = image::load_from_memory(&looked).unwrap();
            assert!(map.width() >= SIDE as u32);
        });
        let hearers = Hearers {
            listening: &|address| tell.send(address).unwrap(),
            warn: &|message| warnings.lock().unwrap().push(message.to_string()),
        };
        let device = Device::cpu(1);
        collection.serve(&device, &options, stop, &hearers).unwrap();
    });
    assert!(warnings.into_inner().unwrap().is_empty());
}
