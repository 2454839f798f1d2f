//! Files are whole or not there, whatever fails.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use anchorhood_storage::{
    AppendFile, AtomicFile, AtomicFolder, Disk, Fault, FileSystem, Forgetful, Kind,
};

fn names(folder: &Path) -> Vec<String> {
    let paths = Disk.list(folder).unwrap().into_iter();
    let mut names: Vec<String> =
        paths.map(|p| p.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_new_file_takes_the_old_ones_place_and_leaves_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    AtomicFile::write(&path, b"one").unwrap();
    let mut second = AtomicFile::create(&path).unwrap();
    second.write_all(b"TWo").unwrap();
    second.seek(SeekFrom::Start(0)).unwrap();
    second.write_all(b"tw").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"one");
    second.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    let mut third = AtomicFile::create(&path).unwrap();
    third.write_all(b"three").unwrap();
    drop(third);
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(names(folder.path()), ["a.bin"]);
}

/// In a process of its own, since the current folder is every thread's.
#[test]
fn a_bare_name_is_a_file_in_the_current_folder() {
    const HERE: &str = "FILES_TEST_BARE_NAME";
    const TEST: &str = "atomic::a_bare_name_is_a_file_in_the_current_folder";
    if std::env::var_os(HERE).is_some() {
        return AtomicFile::write(Path::new("model.safetensors"), b"whole").unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", TEST]);
    let done = again.env(HERE, "1").current_dir(folder.path()).output();
    assert!(done.unwrap().status.success());
    assert_eq!(names(folder.path()), ["model.safetensors"]);
}

/// Each operation in turn fails once: the file is the old one or the new one, and nothing is left
/// beside it. `power_cut.rs` has what else can happen to it.
#[test]
fn a_failure_anywhere_leaves_the_old_file_or_the_new_one() {
    let (start, path) = (Forgetful::new(), Path::new("/a.bin"));
    AtomicFile::write_on(&start, path, b"old").unwrap();
    let whole = start.copy();
    AtomicFile::write_on(&whole, path, b"new one").unwrap();
    assert_eq!(whole.log().len(), 5, "create, write, sync, rename, sync of the folder");
    for n in 0..5 {
        let disk = start.failing(n, Fault::Once);
        AtomicFile::write_on(&disk, path, b"new one").unwrap_err();
        assert_eq!(disk.list(Path::new("/")).unwrap(), [path], "operation {n}");
        let bytes = disk.copy().read(path).unwrap();
        assert!(bytes == b"old" || bytes == b"new one", "operation {n}");
    }
}

#[test]
fn writers_of_one_name_do_not_meet() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    std::thread::scope(|scope| {
        for writer in 0..8_u8 {
            let path = &path;
            scope.spawn(move || {
                for _ in 0..20 {
                    let mut file = AtomicFile::create(path).unwrap();
                    for _ in 0..64 {
                        file.write_all(&[writer; 8192]).unwrap();
                    }
                    file.finish().unwrap();
                }
            });
        }
    });
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 64 * 8192);
    assert!(bytes.iter().all(|b| *b == bytes[0]), "of one writer alone");
    assert_eq!(names(folder.path()), ["a.bin"]);
}

#[test]
fn folders_and_what_is_no_file_are_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    for place in [folder.path(), Path::new("/"), Path::new("..")] {
        AtomicFile::write(place, b"x").unwrap_err();
    }
    assert!(names(folder.path()).is_empty());
    #[cfg(unix)]
    {
        assert_eq!(Disk.kind(Path::new("/dev/null")).unwrap(), Kind::Other);
        let said = AtomicFile::create(Path::new("/dev/null")).err().unwrap();
        assert!(said.to_string().contains("no file that could be replaced"));
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if made.is_ok_and(|status| status.success()) {
            AtomicFile::write(&pipe, b"x").unwrap_err();
            assert_eq!(Disk.kind(&pipe).unwrap(), Kind::Other);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_the_dead_left_goes_when_the_file_is_written_again() {
    use std::time::{Duration, SystemTime};
    let folder = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let (dead, alive) = (child.id(), std::process::id());
    let left = |name: String, seconds: u64| {
        let file = fs::File::create(folder.path().join(&name)).unwrap();
        let then = SystemTime::now() - Duration::from_secs(seconds);
        file.set_modified(then).unwrap();
        name
    };
    left(format!(".a.{dead}-0.partial"), 0);
    left(format!(".a.{alive}-99999.partial"), 100);
    let mut stay = vec![
        left(format!(".a.{alive}-99998.partial"), 0),
        left(format!(".b.{dead}-0.partial"), 100),
        left(".a.notes.partial".into(), 100_000),
    ];
    // One that is being written stays, however long nothing came.
    let slow = AtomicFile::create(&folder.path().join("a")).unwrap();
    let all = names(folder.path()).into_iter();
    let mut held: Vec<String> = all.filter(|name| !stay.contains(name)).collect();
    let file = fs::File::open(folder.path().join(&held[0])).unwrap();
    let then = SystemTime::now() - Duration::from_secs(1_000_000);
    file.set_modified(then).unwrap();
    assert_eq!(held.len(), 1);
    stay.append(&mut held);
    AtomicFile::write(&folder.path().join("a"), b"").unwrap();
    stay.push("a".into());
    stay.sort();
    assert_eq!(names(folder.path()), stay);
    slow.finish().unwrap();
}

#[test]
fn a_long_name_has_room_for_its_temporary() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("é".repeat(127));
    AtomicFile::write(&path, b"x").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"x");
}

#[test]
fn what_is_added_is_added_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut file = AppendFile::open(Disk::shared(), &path).unwrap();
    file.append(b"one\n").unwrap();
    drop(file);
    let mut file = AppendFile::open(Disk::shared(), &path).unwrap();
    assert_eq!(file.length(), 4);
    file.append("zwei ü\n".as_bytes()).unwrap();
    file.sync().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\nzwei ü\n");
    // Opened, written: a write that fails leaves nothing of itself, unless nothing works any more.
    for (fault, left) in [
        (Fault::Once, "one\nzwei ü\n"),
        (Fault::Full, "one\nzwei ü\n"),
        (Fault::Torn, "one\nzwei ü\nth"),
    ] {
        let (start, path) = (Forgetful::new(), Path::new("/log"));
        AtomicFile::write_on(&start, path, "one\nzwei ü\n".as_bytes()).unwrap();
        let disk = start.failing(1, fault);
        let mut file = AppendFile::open(disk.shared(), path).unwrap();
        file.append(b"thr\n").unwrap_err();
        assert_eq!(disk.copy().read(path).unwrap(), left.as_bytes(), "{fault:?}");
    }
    file.truncate(4).unwrap();
    file.append(b"b\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\nb\n");
}

#[test]
fn a_file_that_grows_is_held_by_one() {
    let folder = tempfile::tempdir().unwrap();
    for disk in [Disk::shared(), Forgetful::new().shared()] {
        disk.create_folders(folder.path()).unwrap();
        let path = folder.path().join("log");
        let open = || AppendFile::open(disk.clone(), &path).unwrap();
        let (mut first, mut second) = (open(), open());
        assert!(first.hold().unwrap() && !second.hold().unwrap());
        drop(first);
        assert!(second.hold().unwrap());
    }
}

/// What is in it does not matter, so that nothing which is removed from it lets a second in.
#[test]
fn a_folder_is_held_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("a");
    for disk in [Disk::shared(), Forgetful::new().shared()] {
        disk.create_folders(&inside).unwrap();
        AtomicFile::write_on(&*disk, &inside.join("x"), b"x").unwrap();
        let held = disk.hold_folder(&inside).unwrap();
        assert!(held.is_some());
        disk.remove(&inside.join("x")).unwrap();
        assert!(disk.hold_folder(&inside).unwrap().is_none());
        drop(held);
        assert!(disk.hold_folder(&inside).unwrap().is_some());
    }
}

#[test]
fn a_folder_appears_whole_and_takes_nobodys_place() {
    let (start, root, place) = (Forgetful::new(), Path::new("/"), Path::new("/a"));
    let make = |disk: &dyn FileSystem| {
        let new = AtomicFolder::create(disk, place)?;
        disk.create_folder(&new.path().join("inside"))?;
        AtomicFile::write_on(disk, &new.path().join("x"), b"x")?;
        new.finish()
    };
    let inside = ["inside", "x"].map(|name| place.join(name));
    let whole = start.copy();
    make(&whole).unwrap();
    assert_eq!(whole.log().len(), 10);
    for n in 0..10 {
        let disk = start.failing(n, Fault::Once);
        make(&disk).unwrap_err();
        let there = disk.list(root).unwrap();
        assert!(there.is_empty() || there == [place], "{n}: {there:?}");
        assert!(there.is_empty() || disk.list(place).unwrap() == inside, "{n}");
    }
    assert_eq!(whole.list(place).unwrap(), inside);
    let again = make(&whole).unwrap_err();
    assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(whole.list(root).unwrap(), [place]);
}

#[cfg(target_os = "linux")]
#[test]
fn folders_that_the_dead_left_go_when_the_folder_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let left = folder.path().join(format!(".a.{}-0.partial", child.id()));
    fs::create_dir_all(left.join("inside")).unwrap();
    let place = folder.path().join("a");
    let slow = AtomicFolder::create(&Disk, &place).unwrap();
    let quick = AtomicFolder::create(&Disk, &place).unwrap();
    quick.finish().unwrap();
    drop(slow);
    assert_eq!(names(folder.path()), ["a"]);
}
