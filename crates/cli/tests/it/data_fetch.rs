//! `anchorhood data fetch` against a server of our own that cuts connections, ignores ranges, lies
//! and refuses.

use std::fs;
use std::net::TcpListener;

use crate::common::{Ran, Sandbox, names};
use crate::file_server::{Manner, Server, megabyte, run};

const TRAIN: &str = "data/svhn/train_32x32.mat";

/// A megabyte that repeats nowhere, its MD5, and where it is fetched to.
fn begin() -> (Vec<u8>, String, Sandbox) {
    let bytes = megabyte();
    let sum = md5(&bytes);
    (bytes, sum, Sandbox::new())
}

fn md5(bytes: &[u8]) -> String {
    use md5::{Digest, Md5};
    Md5::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Fetches SVHN, both of whose files the server gives alike.
fn fetch(sandbox: &Sandbox, server: &str, sum: &str) -> Ran {
    let sums = format!("--md5 train_32x32.mat={sum} --md5 test_32x32.mat={sum}");
    run(sandbox, &format!("data fetch svhn --mirror {server} --pause 5 {sums}"))
}

fn files(sandbox: &Sandbox) -> Vec<String> {
    names(&sandbox.path("data/svhn"))
}

#[test]
fn a_whole_file_takes_its_name_and_is_not_fetched_twice() {
    let (bytes, sum, sandbox) = begin();
    let server = Server::start(bytes.clone(), &[Manner::Good]);
    let ran = fetch(&sandbox, &server.address, &sum).succeeded();
    ran.prints("anchorhood data check svhn").says("train_32x32.mat: 1 of 1 MB");
    assert_eq!(files(&sandbox), ["test_32x32.mat", "train_32x32.mat"]);
    assert!(sandbox.read(TRAIN) == bytes);
    fetch(&sandbox, &server.address, &sum).succeeded().says("is there already");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn broken_connections_are_resumed_where_they_broke() {
    let (bytes, sum, sandbox) = begin();
    let manners = [
        Manner::CutAfter(300_000),
        Manner::CutAfter(0),
        Manner::Status(503),
        Manner::CutAfter(200_000),
        Manner::Good,
    ];
    let server = Server::start(bytes.clone(), &manners);
    fetch(&sandbox, &server.address, &sum).succeeded().says("trying again");
    let ranges = ["", "bytes=300000-", "bytes=300000-", "bytes=300000-", "bytes=500000-"];
    assert_eq!(server.requests()[..5], ranges);
    assert!(sandbox.read(TRAIN) == bytes);
}

#[test]
fn a_later_command_goes_on_and_half_a_file_never_has_the_name() {
    let (bytes, sum, sandbox) = begin();
    // The last manner stays: every attempt after the first brings nothing.
    let server = Server::start(bytes.clone(), &[Manner::CutAfter(400_000), Manner::CutAfter(0)]);
    let ran = fetch(&sandbox, &server.address, &sum);
    ran.failed(1, "train_32x32.mat; gave up after 5 attempts; goes on where");
    assert_eq!(files(&sandbox), ["train_32x32.mat.part"]);
    let server = Server::start(bytes, &[Manner::Good]);
    fetch(&sandbox, &server.address, &sum).succeeded().says("going on after 0 MB");
    assert_eq!(server.requests()[0], "bytes=400000-");
    assert_eq!(files(&sandbox), ["test_32x32.mat", "train_32x32.mat"]);
}

#[test]
fn a_server_without_ranges_or_with_wrong_ones() {
    for manner in [Manner::NoRanges, Manner::WrongRange] {
        let (bytes, sum, sandbox) = begin();
        let manners = [Manner::CutAfter(300_000), manner, Manner::Good];
        let server = Server::start(bytes.clone(), &manners);
        fetch(&sandbox, &server.address, &sum).succeeded();
        assert!(sandbox.read(TRAIN) == bytes, "{manner:?}");
    }
}

#[test]
fn a_part_that_is_whole_or_of_another_file() {
    let begun = |part: fn(&[u8]) -> Vec<u8>| {
        let (bytes, sum, sandbox) = begin();
        sandbox.write(&format!("{TRAIN}.part"), part(&bytes));
        let server = Server::start(bytes.clone(), &[Manner::Good]);
        let ran = fetch(&sandbox, &server.address, &sum).succeeded();
        assert!(sandbox.read(TRAIN) == bytes);
        ran
    };
    begun(<[u8]>::to_vec);
    begun(|_| vec![0; 1000]).says("once more from the start");
    begun(|bytes| vec![0; bytes.len() + 7]).says("trying again");
}

#[test]
fn two_downloads_of_one_file_do_not_mix() {
    let (bytes, sum, sandbox) = begin();
    sandbox.write(&format!("{TRAIN}.part"), "");
    let part = fs::File::create(sandbox.path(&format!("{TRAIN}.part"))).unwrap();
    part.lock().unwrap();
    let server = Server::start(bytes, &[Manner::Good]);
    let ran = fetch(&sandbox, &server.address, &sum);
    ran.failed(1, "train_32x32.mat.part; another program");
    drop(part);
    fetch(&sandbox, &server.address, &sum).succeeded();
}

/// What lies under the file's names is somebody's, and stays.
#[cfg(unix)]
#[test]
fn nothing_is_written_through_links_or_over_what_came_meanwhile() {
    use std::os::unix::fs::symlink;
    let (bytes, sum, sandbox) = begin();
    let server = Server::start(bytes, &[Manner::Good]);
    sandbox.write("key", "secret");
    fs::create_dir_all(sandbox.path("data/svhn")).unwrap();
    let part = sandbox.path(&format!("{TRAIN}.part"));
    symlink(sandbox.path("key"), &part).unwrap();
    fetch(&sandbox, &server.address, &sum).failed(1, "train_32x32.mat.part; is a link");
    fs::remove_file(&part).unwrap();
    if crate::common::pipe(&part) {
        fetch(&sandbox, &server.address, &sum).failed(1, "train_32x32.mat.part; regular file");
        fs::remove_file(&part).unwrap();
    }
    // A link to nothing is not there before, and is when the file is whole.
    symlink("nowhere", sandbox.path(TRAIN)).unwrap();
    fetch(&sandbox, &server.address, &sum).failed(1, "train_32x32.mat; meanwhile; .part");
    assert_eq!(fs::read_link(sandbox.path(TRAIN)).unwrap(), std::path::Path::new("nowhere"));
    assert_eq!(sandbox.read("key"), b"secret");
}

#[test]
fn wrong_bytes_are_thrown_away() {
    let (bytes, _, sandbox) = begin();
    let server = Server::start(bytes, &[Manner::Good]);
    let expected = "e26dedcc434d2e4c54c9b2d4a06d8373";
    let fetch = || run(&sandbox, &format!("data fetch svhn --mirror {}", server.address));
    fetch().failed(1, &format!("train_32x32.mat; {expected}; found; thrown away"));
    assert!(files(&sandbox).is_empty(), "{:?}", files(&sandbox));
    sandbox.write(TRAIN, "mine");
    fetch().failed(1, &format!("train_32x32.mat: is there already; {expected}; move it away"));
    assert_eq!(sandbox.read(TRAIN), b"mine");
}

#[test]
fn a_refusal_is_final_and_no_server_is_said_plainly() {
    let (bytes, sum, sandbox) = begin();
    for (status, meaning) in [(404, "not there"), (403, "not allowed")] {
        let server = Server::start(bytes.clone(), &[Manner::Status(status)]);
        let ran = fetch(&sandbox, &server.address, &sum);
        ran.failed(1, &format!("train_32x32.mat; {status}; {meaning}"));
        assert_eq!(server.requests().len(), 1);
    }
    // A port that nobody listens on any more.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ran = fetch(&sandbox, &format!("http://{port}"), &sum);
    ran.failed(1, "no connection; Is this machine online?");
    fetch(&sandbox, "nonsense", &sum).failed(1, "nonsense/train_32x32.mat");
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
    let sums = format!("--md5 images.tar={sum} --md5 lists.tar={sum}");
    run(sandbox, &format!("data fetch dogs --mirror {} {sums}", server.address))
}

#[test]
fn archives_are_unpacked_into_place() {
    let sandbox = Sandbox::new();
    // What images.tar brings; lists.tar is another.
    sandbox.write("data/dogs/train_list.mat", "a list");
    let tar = tar_of(&[("./Images/a/1.jpg", "one"), ("Images/b/2.jpg", "two")]);
    fetch_dogs(&sandbox, tar.clone()).succeeded();
    assert_eq!(names(&sandbox.path("data/dogs")), ["Images", "train_list.mat"]);
    assert_eq!(sandbox.read("data/dogs/Images/b/2.jpg"), b"two");
    fetch_dogs(&sandbox, tar).succeeded().says("Images: is there already");
}

#[test]
fn archives_that_lead_out_or_end_early_leave_nothing() {
    let out = |name| tar_of(&[("Images/a/1.jpg", "one"), (name, "evil")]);
    let whole = tar_of(&[("Images/a/1.jpg", "one"), ("Images/a/2.jpg", &"two".repeat(500))]);
    for (tar, named) in [
        (out("../evil"), "images.tar; leads out of the folder"),
        (out("/tmp/anchorhood-evil"), "images.tar; leads out of the folder"),
        (whole[..2000].to_vec(), "images.tar"),
        (tar_of(&[("other/1.jpg", "one")]), "expected Images in it"),
    ] {
        let sandbox = Sandbox::new();
        fetch_dogs(&sandbox, tar).failed(1, named);
        assert_eq!(names(&sandbox.path("data/dogs")), ["images.tar"]);
        assert!(!sandbox.path("data/evil").exists());
    }
}
