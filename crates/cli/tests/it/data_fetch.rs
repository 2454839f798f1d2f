//! `anchorhood data fetch` against a server of our own that cuts connections, ignores ranges, lies
//! and refuses.

use std::fs;
use std::net::TcpListener;

use crate::common::{Ran, Sandbox, names};
use crate::file_server::{Manner, Server, megabyte, run};

/// A megabyte that repeats nowhere, and its MD5.
fn body() -> (Vec<u8>, String) {
    let bytes = megabyte();
    let sum = md5(&bytes);
    (bytes, sum)
}

fn md5(bytes: &[u8]) -> String {
    use md5::{Digest, Md5};
    Md5::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Fetches SVHN, both of whose files the server gives alike.
fn fetch(sandbox: &Sandbox, server: &str, sum: &str) -> Ran {
    let args = [
        "data",
        "fetch",
        "svhn",
        "--mirror",
        server,
        "--pause",
        "5",
        "--md5",
        &format!("train_32x32.mat={sum}"),
        "--md5",
        &format!("test_32x32.mat={sum}"),
    ];
    run(sandbox, &args)
}

fn files(sandbox: &Sandbox) -> Vec<String> {
    names(&sandbox.path("data/svhn"))
}

#[test]
fn a_whole_file_takes_its_name_and_is_not_fetched_twice() {
    let ((bytes, sum), sandbox) = (body(), Sandbox::new());
    let server = Server::start(bytes.clone(), &[Manner::Good]);
    let ran = fetch(&sandbox, &server.address, &sum).succeeded();
    assert!(ran.stdout.contains("anchorhood data check svhn"), "{ran:?}");
    assert!(ran.stderr.contains("train_32x32.mat: 1 of 1 MB"), "{ran:?}");
    assert_eq!(files(&sandbox), ["test_32x32.mat", "train_32x32.mat"]);
    assert!(fs::read(sandbox.path("data/svhn/train_32x32.mat")).unwrap() == bytes);
    fetch(&sandbox, &server.address, &sum).succeeded().says(&["is there already"]);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn broken_connections_are_resumed_where_they_broke() {
    let ((bytes, sum), sandbox) = (body(), Sandbox::new());
    let manners = [
        Manner::CutAfter(300_000),
        Manner::CutAfter(0),
        Manner::Status(503),
        Manner::CutAfter(200_000),
        Manner::Good,
    ];
    let server = Server::start(bytes.clone(), &manners);
    fetch(&sandbox, &server.address, &sum).succeeded().says(&["trying again"]);
    let ranges = ["", "bytes=300000-", "bytes=300000-", "bytes=300000-", "bytes=500000-"];
    assert_eq!(server.requests()[..5], ranges);
    assert!(fs::read(sandbox.path("data/svhn/train_32x32.mat")).unwrap() == bytes);
}

#[test]
fn a_later_command_goes_on_and_half_a_file_never_has_the_name() {
    let ((bytes, sum), sandbox) = (body(), Sandbox::new());
    // The last manner stays: every attempt after the first brings nothing.
    let server = Server::start(bytes.clone(), &[Manner::CutAfter(400_000), Manner::CutAfter(0)]);
    fetch(&sandbox, &server.address, &sum)
        .failed(1, &["train_32x32.mat", "gave up after 5 attempts", "goes on where"]);
    assert_eq!(files(&sandbox), ["train_32x32.mat.part"]);
    let server = Server::start(bytes, &[Manner::Good]);
    fetch(&sandbox, &server.address, &sum).succeeded().says(&["going on after 0 MB"]);
    assert_eq!(server.requests()[0], "bytes=400000-");
    assert_eq!(files(&sandbox), ["test_32x32.mat", "train_32x32.mat"]);
}

#[test]
fn a_server_without_ranges_or_with_wrong_ones() {
    let (bytes, sum) = body();
    for manner in [Manner::NoRanges, Manner::WrongRange] {
        let sandbox = Sandbox::new();
        let server =
            Server::start(bytes.clone(), &[Manner::CutAfter(300_000), manner, Manner::Good]);
        fetch(&sandbox, &server.address, &sum).succeeded();
        let got = fs::read(sandbox.path("data/svhn/train_32x32.mat")).unwrap();
        assert!(got == bytes, "{manner:?}");
    }
}

#[test]
fn a_part_that_is_whole_or_of_another_file() {
    let (bytes, sum) = body();
    let begun = |part: &[u8]| {
        let sandbox = Sandbox::new();
        fs::create_dir_all(sandbox.path("data/svhn")).unwrap();
        fs::write(sandbox.path("data/svhn/train_32x32.mat.part"), part).unwrap();
        let server = Server::start(bytes.clone(), &[Manner::Good]);
        let ran = fetch(&sandbox, &server.address, &sum).succeeded();
        assert!(fs::read(sandbox.path("data/svhn/train_32x32.mat")).unwrap() == bytes);
        ran
    };
    begun(&bytes);
    begun(&[0; 1000]).says(&["once more from the start"]);
    begun(&vec![0; bytes.len() + 7]).says(&["trying again"]);
}

#[test]
fn two_downloads_of_one_file_do_not_mix() {
    let ((bytes, sum), sandbox) = (body(), Sandbox::new());
    fs::create_dir_all(sandbox.path("data/svhn")).unwrap();
    let part = fs::File::create(sandbox.path("data/svhn/train_32x32.mat.part")).unwrap();
    part.lock().unwrap();
    let server = Server::start(bytes, &[Manner::Good]);
    fetch(&sandbox, &server.address, &sum).failed(1, &["train_32x32.mat.part", "another program"]);
    drop(part);
    fetch(&sandbox, &server.address, &sum).succeeded();
}

#[test]
fn wrong_bytes_are_thrown_away() {
    let ((bytes, _), sandbox) = (body(), Sandbox::new());
    let server = Server::start(bytes, &[Manner::Good]);
    let expected = "e26dedcc434d2e4c54c9b2d4a06d8373";
    let args = ["data", "fetch", "svhn", "--mirror", &server.address];
    run(&sandbox, &args).failed(1, &["train_32x32.mat", expected, "found", "thrown away"]);
    assert!(files(&sandbox).is_empty(), "{:?}", files(&sandbox));
    fs::write(sandbox.path("data/svhn/train_32x32.mat"), "mine").unwrap();
    run(&sandbox, &args)
        .failed(1, &["train_32x32.mat: is there already", expected, "move it away"]);
    assert_eq!(fs::read(sandbox.path("data/svhn/train_32x32.mat")).unwrap(), b"mine");
}

#[test]
fn a_refusal_is_final_and_no_server_is_said_plainly() {
    let ((bytes, sum), sandbox) = (body(), Sandbox::new());
    for (status, meaning) in [(404, "not there"), (403, "not allowed")] {
        let server = Server::start(bytes.clone(), &[Manner::Status(status)]);
        fetch(&sandbox, &server.address, &sum)
            .failed(1, &["train_32x32.mat", &status.to_string(), meaning]);
        assert_eq!(server.requests().len(), 1);
    }
    // A port that nobody listens on any more.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    fetch(&sandbox, &format!("http://{port}"), &sum)
        .failed(1, &["no connection", "Is this machine online?"]);
    fetch(&sandbox, "nonsense", &sum).failed(1, &["nonsense/train_32x32.mat"]);
    assert!(files(&sandbox).is_empty(), "{:?}", files(&sandbox));
}

/// A tar of one file for each name.
fn tar_of(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, text) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        // Written as it is: the builder itself would refuse a name that leads out.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn fetch_dogs(sandbox: &Sandbox, tar: Vec<u8>) -> Ran {
    let sum = md5(&tar);
    let server = Server::start(tar, &[Manner::Good]);
    let (images, lists) = (format!("images.tar={sum}"), format!("lists.tar={sum}"));
    let args =
        ["data", "fetch", "dogs", "--mirror", &server.address, "--md5", &images, "--md5", &lists];
    run(sandbox, &args)
}

#[test]
fn archives_are_unpacked_into_place() {
    let sandbox = Sandbox::new();
    // What images.tar brings; lists.tar is another.
    fs::create_dir_all(sandbox.path("data/dogs")).unwrap();
    fs::write(sandbox.path("data/dogs/train_list.mat"), "a list").unwrap();
    let tar = tar_of(&[("./Images/a/1.jpg", "one"), ("Images/b/2.jpg", "two")]);
    fetch_dogs(&sandbox, tar.clone()).succeeded();
    assert_eq!(names(&sandbox.path("data/dogs")), ["Images", "train_list.mat"]);
    assert_eq!(fs::read(sandbox.path("data/dogs/Images/b/2.jpg")).unwrap(), b"two");
    fetch_dogs(&sandbox, tar).succeeded().says(&["Images: is there already"]);
}

#[test]
fn archives_that_lead_out_or_end_early_leave_nothing() {
    for (name, said) in [
        ("../evil", "leads out of the folder"),
        ("/tmp/anchorhood-evil", "leads out of the folder"),
    ] {
        let sandbox = Sandbox::new();
        let tar = tar_of(&[("Images/a/1.jpg", "one"), (name, "evil")]);
        fetch_dogs(&sandbox, tar).failed(1, &["images.tar", said]);
        assert_eq!(names(&sandbox.path("data/dogs")), ["images.tar"]);
        assert!(!sandbox.path("data/evil").exists());
    }
    let sandbox = Sandbox::new();
    let whole = tar_of(&[("Images/a/1.jpg", "one"), ("Images/a/2.jpg", &"two".repeat(500))]);
    fetch_dogs(&sandbox, whole[..2000].to_vec()).failed(1, &["images.tar"]);
    assert_eq!(names(&sandbox.path("data/dogs")), ["images.tar"]);
    let sandbox = Sandbox::new();
    fetch_dogs(&sandbox, tar_of(&[("other/1.jpg", "one")])).failed(1, &["expected Images in it"]);
}

#[test]
fn what_cannot_be_fetched() {
    let sandbox = Sandbox::new();
    let fetch = |more: &[&str]| sandbox.run(&[&["data", "fetch"], more].concat());
    fetch(&["imagenet"]).failed(
        2,
        &["account", "data/imagenet/train", "ILSVRC2012_devkit_t12.tar.gz", "data check"],
    );
    fetch(&["mnist"]).failed(2, &["mnist", "cifar10, cifar100, svhn"]);
    fetch(&["cifar10", "--extra"]).failed(2, &["no extra pictures"]);
    assert!(!sandbox.path("data").exists(), "nothing is left behind");
}
