//! `anchorhood info`: what this machine and this program offer.

use std::fmt::Display;

use anchorhood::research::{BACKBONES, Precision};
use anchorhood::{Device, Images, LoadOptions, VERSION};
use anchorhood_data::ImageFormat;
use anchorhood_distributed::{Launch, find_mpi};
use anchorhood_engine::{Cuda, Library, find_nccl};
use anchorhood_index::onnx::Runtime;
use serde_json::json;

use crate::args::InfoArgs;
use crate::terminal::failure::Failure;
use crate::terminal::output;

pub fn run(args: &InfoArgs) -> Result<(), Failure> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let device = Device::cpu(threads).describe();
    let gpu = Device::cuda(0, Precision::Bf16).map(|gpu| gpu.describe());
    let gpus = Cuda::count().unwrap_or(0);
    let nccl = find_nccl().map(|(version, place)| format!("NCCL {version}: {place}"));
    let libraries = Library::ALL.map(Library::open);
    let networks: Vec<&str> = BACKBONES.all().into_iter().map(|a| a.name).collect();
    let onnx = Runtime::find(anchorhood_data::host_memory().free / 2)
        .map(|found| format!("ONNX Runtime {}: {}", found.version(), found.place().display()));
    let launch = Launch::from_environment();
    let mpi = find_mpi(launch.as_ref().ok().and_then(Option::as_ref));
    let mpi = mpi.map(|(kind, place)| format!("{kind}: {}", place.display()));
    let launch = match launch {
        Ok(Some(launch)) => launch.to_string(),
        Ok(None) => "one process".into(),
        Err(why) => why.to_string(),
    };
    let cifar = ["cifar10", "cifar100"].map(|name| (name, look_for(name)));
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    if args.json {
        let sets = cifar.iter().map(|(name, place)| {
            let value = match place {
                Ok(found) => json!({ "found": found }),
                Err(why) => json!({ "missing": why }),
            };
            (name.to_string(), value)
        });
        let sets: serde_json::Map<_, _> = sets.collect();
        let object = json!({
            "version": VERSION,
            "machine": format!("{os} {arch}"),
            "threads": threads,
            "devices": [device],
            "gpu": gpu.as_ref().ok(),
            "gpus": gpus,
            "nccl": nccl.as_ref().ok(),
            "libraries": libraries.iter().flatten().map(|l| l.place.as_str()).collect::<Vec<_>>(),
            "networks": networks,
            "onnx": onnx.as_ref().ok(),
            "launch": launch,
            "mpi": mpi.as_ref().ok(),
            "data": sets,
        });
        return output::line(&object.to_string());
    }
    output::line(&format!("anchorhood {VERSION} on {os} {arch}"))?;
    output::line(&format!("device    {device}"))?;
    match gpu {
        Ok(name) => {
            let more = match gpus {
                0 | 1 => String::new(),
                count => format!(", the first of {count}"),
            };
            output::line(&format!("gpu       {name}{more}"))?;
            for found in libraries.iter().flatten() {
                output::line(&format!("          {}: {}", found.library, found.place))?;
            }
        }
        Err(why) => output::line(&format!("gpu       none is used: {why}"))?,
    }
    output::line(&format!("cores     {threads}"))?;
    output::line(&format!("networks  {}", networks.join(", ")))?;
    fn told(found: Result<String, impl Display>, none: &str) -> String {
        found.unwrap_or_else(|why| format!("{none}{why}"))
    }
    for (name, text) in [
        ("onnx", told(onnx, "no .onnx model can be used: ")),
        ("launch", launch),
        ("mpi", told(mpi, "")),
        ("nccl", told(nccl, "GPUs of several processes cannot work together: ")),
    ] {
        output::line(&format!("{name:<9} {text}"))?;
    }
    output::line("data      shapes: drawn by the program, always there")?;
    for (name, place) in &cifar {
        let text = match place {
            Ok(found) => format!("{name}: {found}"),
            Err(why) => why.clone(),
        };
        output::line(&format!("          {text}"))?;
    }
    output::line(&format!("          or any folder of {} files", ImageFormat::names()))
}

/// How many pictures of a data set there are where it is usually kept, or why there are none.
fn look_for(name: &str) -> Result<String, String> {
    let set = Images::open(name).and_then(|images| images.load(&LoadOptions::default()));
    let set = set.map_err(|e| e.to_string())?;
    let test = set.test.as_ref().map_or(0, |t| t.pictures.len());
    Ok(format!(
        "{} pictures to train on, {} to test on",
        output::grouped(set.train.pictures.len()),
        output::grouped(test)
    ))
}
