//! `anchorhood model` as a user has it: what can be fetched, a download that breaks, is wrong or is
//! refused, and what a model is.

use std::fs;
use std::net::TcpListener;

use anchorhood::engine::{Device, NetworkOptions};
use anchorhood::models::{Architecture, Weights};
use serde_json::Value;

use crate::common::{self, Ran, Sandbox, names};
use crate::file_server::{Manner, Server, megabyte};

fn sha256(bytes: &[u8]) -> String {
    let sum = ring::digest::digest(&ring::digest::SHA256, bytes);
    sum.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

/// The program with a cache of its own.
fn with_cache(sandbox: &Sandbox, args: &[&str]) -> Ran {
    let mut command = sandbox.command(args);
    command.env("ANCHORHOOD_CACHE", sandbox.path("cache"));
    for name in ["http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    Ran::from(command.output().expect("the program starts"))
}

fn fetch(sandbox: &Sandbox, address: &str, more: &[&str]) -> Ran {
    let args = [&["model", "fetch", address, "--pause", "5"], more].concat();
    with_cache(sandbox, &args)
}

fn kept(sandbox: &Sandbox) -> Vec<String> {
    names(&sandbox.path("cache/models"))
}

/// A narrow ResNet18 as another program would write it.
fn weights() -> Vec<u8> {
    let graph = Architecture::ResNet18.graph(32, 4, 10).unwrap();
    let mut network = Device::cpu(1).network(&graph, &NetworkOptions::new(1)).unwrap();
    network.initialise(5).unwrap();
    Weights::of(&network).unwrap().encode()
}

#[test]
fn a_broken_download_goes_on_and_half_a_file_never_has_the_name() {
    let (bytes, sandbox) = (megabyte(), Sandbox::new());
    let sum = sha256(&bytes);
    let server = Server::start(bytes.clone(), &[Manner::CutAfter(400_000), Manner::CutAfter(0)]);
    let address = format!("{}/mine.safetensors", server.address);
    fetch(&sandbox, &address, &["--sha256", &sum])
        .failed(1, &["mine.safetensors", "gave up after 5", "the address is right"]);
    assert_eq!(kept(&sandbox), ["mine.safetensors.part"]);
    let server = Server::start(bytes.clone(), &[Manner::Good]);
    let address = format!("{}/mine.safetensors?download=1", server.address);
    let sum = sum.to_uppercase();
    let ran = fetch(&sandbox, &address, &["--sha256", &sum]).succeeded();
    assert!(ran.stdout.contains("model show mine.safetensors"), "{ran:?}");
    assert_eq!(server.requests(), ["bytes=400000-"]);
    assert_eq!(kept(&sandbox), ["mine.safetensors"]);
    let file = sandbox.path("cache/models/mine.safetensors");
    assert!(fs::read(&file).unwrap() == bytes);
    fetch(&sandbox, &address, &["--sha256", &sum]).succeeded().says(&["is there already"]);
    assert_eq!(server.requests().len(), 1);
    // It is no model, which is said when it is used.
    with_cache(&sandbox, &["model", "show", "mine"]).failed(1, &["mine.safetensors"]);
}

#[test]
fn wrong_bytes_and_refusals_leave_nothing() {
    let (bytes, sandbox) = (megabyte(), Sandbox::new());
    let server = Server::start(bytes.clone(), &[Manner::Good]);
    // A published name from a place that has something else, whole or cut short.
    let name = "torchvision-resnet18";
    for body in [bytes.clone(), bytes[..1000].to_vec()] {
        let server = Server::start(body, &[Manner::Good]);
        fetch(&sandbox, name, &["--mirror", &server.address])
            .failed(1, &["resnet18-f37072fd.pth", "begins with f37072fd", "thrown away"]);
    }
    let wrong = "0".repeat(64);
    let address = format!("{}/a.pth", server.address);
    fetch(&sandbox, &address, &["--sha256", &wrong]).failed(1, &["a.pth", &wrong, "thrown away"]);
    let refusing = Server::start(bytes, &[Manner::Status(404)]);
    let address = format!("{}/a.pth", refusing.address);
    fetch(&sandbox, &address, &["--sha256", &wrong]).failed(1, &["404", "not there"]);
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = format!("http://{gone}/a.pth");
    fetch(&sandbox, &address, &["--sha256", &wrong])
        .failed(1, &["no connection", "Is this machine online?"]);
    assert!(kept(&sandbox).is_empty(), "{:?}", kept(&sandbox));
}

#[test]
fn what_cannot_be_asked_for() {
    let sandbox = Sandbox::new();
    fetch(&sandbox, "resnet19", &[]).failed(2, &["resnet19", "torchvision-resnet18"]);
    fetch(&sandbox, "https://example.org/a.pth", &[]).failed(2, &["--sha256"]);
    let sum = "0".repeat(64);
    for address in ["https://example.org/", "https://example.org/..", "https://a.b/x%2fy.pth"] {
        fetch(&sandbox, address, &["--sha256", &sum]).failed(2, &["the name of a file"]);
    }
    let ran = fetch(&sandbox, "https://example.org/a.pth", &["--sha256", "12"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let show = ["model", "show", "torchvision-resnet18"];
    with_cache(&sandbox, &show).failed(2, &["model fetch torchvision-resnet18"]);
    with_cache(&sandbox, &["model", "show", "nothing"]).failed(2, &["nothing"]);
    assert!(!sandbox.path("cache").exists(), "nothing is left behind");
    // No folder at all.
    let mut command = sandbox.command(&["model", "list"]);
    for name in ["ANCHORHOOD_CACHE", "XDG_CACHE_HOME", "HOME"] {
        command.env_remove(name);
    }
    Ran::from(command.output().unwrap()).failed(2, &["ANCHORHOOD_CACHE"]);
}

#[test]
fn a_fetched_model_is_listed_shown_and_used_by_name() {
    let (bytes, sandbox) = (weights(), Sandbox::new());
    let sum = sha256(&bytes);
    let server = Server::start(bytes, &[Manner::Good]);
    let name = "torchvision-resnet18";
    let mirror = ["--mirror", &server.address, "--sha256", &sum];
    fetch(&sandbox, name, &mirror).succeeded();
    let address = format!("{}/other.safetensors", server.address);
    fetch(&sandbox, &address, &["--sha256", &sum]).succeeded();
    let list = with_cache(&sandbox, &["model", "list"]).succeeded().stdout;
    let row = list.lines().find(|l| l.starts_with(name)).unwrap();
    assert!(row.contains("f37072fd") && row.ends_with("yes"), "{list}");
    assert!(list.contains("other.safetensors") && list.contains("ImageNet"), "{list}");
    let json = with_cache(&sandbox, &["model", "list", "--json"]).succeeded();
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["models"].as_array().unwrap().len(), 6);
    assert!(json["models"][1]["file"].is_null());

    assert!(list.lines().any(|l| l.starts_with("base ") && l.ends_with("yes")));
    let base = with_cache(&sandbox, &["model", "show", "base"]).succeeded();
    assert!(base.stdout.contains("inside this program"), "{base:?}");

    let shown = with_cache(&sandbox, &["model", "show", name, "--json"]).succeeded();
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    for (fact, value) in [
        ("network", Value::from("resnet18")),
        ("width", 4.into()),
        ("size", 32.into()),
        ("features", 32.into()),
        ("layer", "avgpool".into()),
    ] {
        assert_eq!(shown[fact], value, "{shown}");
    }
    assert_eq!(shown["fingerprint"].as_str().unwrap().len(), 32);
    let text = with_cache(&sandbox, &["model", "show", "other"]).succeeded();
    assert!(text.stdout.contains("another program's weights"), "{text:?}");
    // Wherever a model is taken.
    let args = common::train_args(&[
        "--from", name, "--name", "b", "--quiet", "--size", "32", "--width", "4",
    ]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ran = with_cache(&sandbox, &args).succeeded();
    assert!(ran.stdout.contains("before"), "{ran:?}");
    let shown = with_cache(&sandbox, &["model", "show", "b", "--json"]).succeeded();
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["method"], "and");
    assert!(shown["from"].as_str().unwrap().ends_with("resnet18-f37072fd.pth"));
}
