//! `anchorhood model` as a user has it: what can be fetched, a download that breaks or is wrong,
//! and what a model is. How downloads go on and end is in `data_fetch`.

use anchorhood::research::Form;
use serde_json::Value;

use crate::common::{Ran, Sandbox, names, train_args};
use crate::file_server::{Manner, Server, megabyte, run};
use crate::protocols::foreign;

fn sha256(bytes: &[u8]) -> String {
    let sum = ring::digest::digest(&ring::digest::SHA256, bytes);
    sum.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

fn fetch(sandbox: &Sandbox, address: &str, more: &str) -> Ran {
    run(sandbox, &format!("model fetch {address} --pause 5 {more}"))
}

fn kept(sandbox: &Sandbox) -> Vec<String> {
    names(&sandbox.path("cache/models"))
}

#[test]
fn a_broken_download_goes_on_and_half_a_file_never_has_the_name() {
    let (bytes, sandbox) = (megabyte(), Sandbox::new());
    let sum = format!("--sha256 {}", sha256(&bytes));
    let server = Server::start(bytes.clone(), &[Manner::CutAfter(400_000), Manner::CutAfter(0)]);
    let ran = fetch(&sandbox, &format!("{}/mine.safetensors", server.address), &sum);
    ran.failed(1, "mine.safetensors; gave up after 5; the address is right");
    assert_eq!(kept(&sandbox), ["mine.safetensors.part"]);
    let server = Server::start(bytes.clone(), &[Manner::Good]);
    let address = format!("{}/mine.safetensors?download=1", server.address);
    let sum = format!("--sha256 {}", sha256(&bytes).to_uppercase());
    fetch(&sandbox, &address, &sum).succeeded().prints("model show mine.safetensors");
    assert_eq!(server.requests(), ["bytes=400000-"]);
    assert_eq!(kept(&sandbox), ["mine.safetensors"]);
    assert!(sandbox.read("cache/models/mine.safetensors") == bytes);
    fetch(&sandbox, &address, &sum).succeeded().says("is there already");
    assert_eq!(server.requests().len(), 1);
    // It is no model, which is said when it is used.
    run(&sandbox, "model show mine").failed(1, "mine.safetensors");
}

#[test]
fn wrong_bytes_leave_nothing() {
    let (bytes, sandbox) = (megabyte(), Sandbox::new());
    // A published name from a place that has something else, whole or cut short.
    for body in [bytes.clone(), bytes[..1000].to_vec()] {
        let server = Server::start(body, &[Manner::Good]);
        let mirror = format!("--mirror {}", server.address);
        let ran = fetch(&sandbox, "torchvision-resnet18", &mirror);
        ran.failed(1, "resnet18-f37072fd.pth; begins with f37072fd; thrown away");
    }
    let server = Server::start(bytes, &[Manner::Good]);
    let wrong = "0".repeat(64);
    let address = format!("{}/a.pth", server.address);
    let ran = fetch(&sandbox, &address, &format!("--sha256 {wrong}"));
    ran.failed(1, &format!("a.pth; {wrong}; thrown away"));
    assert!(kept(&sandbox).is_empty(), "{:?}", kept(&sandbox));
}

#[test]
fn a_fetched_model_is_listed_shown_and_used_by_name() {
    let (bytes, sandbox) = (foreign(Form::Small, 32, 4, 10), Sandbox::new());
    let sum = format!("--sha256 {}", sha256(&bytes));
    let server = Server::start(bytes, &[Manner::Good]);
    let name = "torchvision-resnet18";
    fetch(&sandbox, name, &format!("--mirror {} {sum}", server.address)).succeeded();
    fetch(&sandbox, &format!("{}/other.safetensors", server.address), &sum).succeeded();
    let list = sandbox.said("model list");
    let row = list.lines().find(|l| l.starts_with(name)).unwrap();
    assert!(row.contains("f37072fd") && row.ends_with("yes"), "{list}");
    assert!(list.contains("other.safetensors") && list.contains("ImageNet"), "{list}");
    assert!(list.lines().any(|l| l.starts_with("base ") && l.ends_with("yes")));
    let json: Value = serde_json::from_str(&sandbox.said("model list --json")).unwrap();
    assert_eq!(json["models"].as_array().unwrap().len(), 6);
    assert!(json["models"][1]["file"].is_null());

    sandbox.run("model show base").succeeded().prints("inside this program");
    let show = |model: &str| -> Value {
        let said = sandbox.said(&format!("model show {model} --json"));
        serde_json::from_str(&said).unwrap()
    };
    let shown = show(name);
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
    sandbox.run("model show other").succeeded().prints("another program's weights");
    // Wherever a model is taken.
    let args = train_args(&format!("--from {name} --name b --quiet --size 32 --width 4"));
    sandbox.run(&args).succeeded().prints("before");
    let shown = show("b");
    assert_eq!(shown["method"], "and");
    assert!(shown["from"].as_str().unwrap().ends_with("resnet18-f37072fd.pth"));
}
