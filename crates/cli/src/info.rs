//! `anchorhood info`: what this machine and this program offer.

use anchorhood::data;
use anchorhood::engine::{Cpu, Device};
use anchorhood::models::Architecture;
use anchorhood::train::VERSION;
use serde_json::json;

use crate::args::InfoArgs;
use crate::failure::Failure;
use crate::output;

/// Runs the command.
pub fn run(args: &InfoArgs) -> Result<(), Failure> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let device = Cpu::new(threads).describe();
    let networks: Vec<&str> = Architecture::ALL.iter().map(|a| a.name()).collect();
    let cifar = ["cifar10", "cifar100"].map(|name| (name, data::whereabouts(name)));
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    if args.json {
        let sets = cifar.iter().map(|(name, place)| {
            let value = match place {
                Ok(found) => json!({ "found": found.display().to_string() }),
                Err(error) => json!({ "missing": error.to_string() }),
            };
            (name.to_string(), value)
        });
        let sets: serde_json::Map<_, _> = sets.collect();
        let object = json!({
            "version": VERSION,
            "machine": format!("{os} {arch}"),
            "threads": threads,
            "devices": [device],
            "networks": networks,
            "data": sets,
        });
        return output::line(&object.to_string());
    }
    output::line(&format!("anchorhood {VERSION} on {os} {arch}"))?;
    output::line(&format!("device    {device}"))?;
    output::line(&format!("cores     {threads}"))?;
    output::line(&format!("networks  {}", networks.join(", ")))?;
    output::line("data      shapes: drawn by the program, always there")?;
    for (name, place) in &cifar {
        let text = match place {
            Ok(found) => format!("{name}: {}", found.display()),
            Err(error) => error.to_string(),
        };
        output::line(&format!("          {text}"))?;
    }
    output::line("          or any folder of JPEG, PNG, WebP, BMP or GIF files")
}
