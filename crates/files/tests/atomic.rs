//! Files are whole or not there, whatever fails.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use anchorhood_files::{AtomicFile, Disk, Failing, FileSystem, Kind, append_line};

fn names(folder: &Path) -> Vec<String> {
    let paths = Disk.list(folder).unwrap().into_iter();
    let mut names: Vec<String> = paths
        .map(|p| p.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
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
    if std::env::var_os(HERE).is_some() {
        return AtomicFile::write(Path::new("model.safetensors"), b"whole").unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "a_bare_name_is_a_file_in_the_current_folder"]);
    let done = again.env(HERE, "1").current_dir(folder.path()).output();
    assert!(done.unwrap().status.success());
    assert_eq!(names(folder.path()), ["model.safetensors"]);
}

/// Each operation in turn fails once: the file is the old one or the new one, and nothing is left beside it.
#[test]
fn a_failure_anywhere_leaves_the_old_file_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    let mut failures = 0;
    for n in 0.. {
        AtomicFile::write(&path, b"old").unwrap();
        let disk = Failing::once(n);
        let result = AtomicFile::write_on(&disk, &path, b"new one");
        let bytes = fs::read(&path).unwrap();
        assert_eq!(names(folder.path()), ["a.bin"], "operation {n}");
        if result.is_ok() {
            assert_eq!(bytes, b"new one");
            assert_eq!(disk.operations(), n, "every operation had its turn");
            break;
        }
        failures += 1;
        assert!(bytes == b"old" || bytes == b"new one", "operation {n}");
    }
    assert_eq!(
        failures, 5,
        "create, write, sync, rename, sync of the folder"
    );
}

/// Everything fails from an operation on, as when the process is killed: the old file or the new one, whole.
#[test]
fn a_kill_anywhere_leaves_the_old_file_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    let mut left = 0;
    for n in 0..5 {
        AtomicFile::write(&path, b"old").unwrap();
        AtomicFile::write_on(&Failing::from(n), &path, b"new one").unwrap_err();
        let bytes = fs::read(&path).unwrap();
        assert!(bytes == b"old" || bytes == b"new one", "operation {n}");
        left = names(folder.path()).len() - 1;
    }
    assert_eq!(left, 3, "what could not be removed");
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
fn lines_are_added_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    append_line(&Disk, &path, "one").unwrap();
    append_line(&Disk, &path, "zwei ü").unwrap();
    append_line(&Disk, &path, "a\nb").unwrap_err();
    assert_eq!(Disk.read(&path).unwrap(), "one\nzwei ü\n".as_bytes());
    for n in 0..3 {
        append_line(&Failing::once(n), &path, "three").unwrap_err();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("one\nzwei ü\n"), "{text}");
        Disk.truncate(&path, 12).unwrap();
    }
}
