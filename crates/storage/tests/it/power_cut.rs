//! What was synced survives a power cut, and whoever forgets to sync is found out.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use anchorhood_storage::{
    AppendFile, AtomicFile, AtomicFolder, FileSystem, Forgetful, Kind, Survives, attack,
};

const ALL: [Survives; 3] = [Survives::Synced, Survives::Names, Survives::Bytes];

fn read(disk: &Forgetful, path: &str) -> Option<Vec<u8>> {
    disk.read(Path::new(path)).ok()
}

#[test]
fn what_was_not_synced_is_forgotten() {
    let disk = Forgetful::new();
    let write = |path: &str, bytes: &[u8], sync: bool| {
        let mut file = disk.create_new(Path::new(path)).unwrap();
        file.write_all(bytes).unwrap();
        sync.then(|| file.sync().unwrap());
    };
    write("/old", b"old", true);
    disk.sync_folder(Path::new("/")).unwrap();
    write("/unsynced", b"new", false);
    write("/unnamed", b"new", true);
    disk.rename(Path::new("/unsynced"), Path::new("/old")).unwrap();
    let after = ALL.map(|cut| disk.power_cut(cut));
    let [synced, names, bytes] = &after;
    assert_eq!(read(synced, "/old").unwrap(), b"old");
    assert_eq!(read(synced, "/unnamed"), None);
    assert_eq!(read(names, "/old").unwrap(), b"", "named before its bytes were there");
    assert_eq!(read(names, "/unnamed").unwrap(), b"new");
    assert_eq!(read(bytes, "/old").unwrap(), b"old");
    // Any mix: also pieces and zeros.
    let mut seen: Vec<_> =
        (0..100).map(|seed| read(&disk.power_cut(Survives::Mix(seed)), "/old")).collect();
    seen.sort();
    seen.dedup();
    let some = |bytes: &[u8]| Some(bytes.to_vec());
    let expected = [some(b""), some(&[0; 3]), some(b"n"), some(b"ne"), some(b"new"), some(b"old")];
    assert_eq!(seen, expected);
}

/// The file layer's own promises, under everything that can happen.
#[test]
fn what_is_finished_survives() {
    let start = Forgetful::new();
    let place = Path::new("/a/b");
    let work = |disk: Arc<dyn FileSystem>| {
        let mut done = 0;
        let mut step = |result: io::Result<()>| result.map(|()| done += 1);
        let _ = step(disk.create_folders(place))
            .and_then(|()| step(AtomicFile::write_on(&*disk, &place.join("x"), b"one")))
            .and_then(|()| step(AtomicFile::write_on(&*disk, &place.join("x"), b"two")))
            .and_then(|()| step(folder(&*disk)))
            .and_then(|()| step(log(&disk)));
        done
    };
    let faults = attack(&start, work, |disk, done, what| {
        let x = read(disk, "/a/b/x");
        let (one, two) = (Some(b"one".to_vec()), Some(b"two".to_vec()));
        assert!(*done < 1 || disk.kind(place).unwrap() == Kind::Folder, "{what}");
        match done {
            0 => assert_eq!(x, None, "{what}"),
            1 => assert!(x.is_none() || x == one, "{what}"),
            2 => assert!(x == one || x == two, "{what}"),
            _ => assert_eq!(x, two, "{what}"),
        }
        let y = read(disk, "/f/inside/y");
        assert!(*done < 4 || y.is_some(), "{what}");
        let there = disk.exists(Path::new("/f"));
        assert_eq!(y.as_deref(), there.then_some(&b"y"[..]), "{what}");
        let log = read(disk, "/log").unwrap_or_default();
        assert!(log.starts_with(b"kept") || *done < 5, "{what}: {log:?}");
    });
    println!("{faults} faults");
    assert!(faults > 200, "{faults}");
}

fn folder(disk: &dyn FileSystem) -> io::Result<()> {
    let new = AtomicFolder::create(disk, Path::new("/f"))?;
    disk.create_folders(&new.path().join("inside"))?;
    AtomicFile::write_on(disk, &new.path().join("inside/y"), b"y")?;
    new.finish()
}

fn log(disk: &Arc<dyn FileSystem>) -> io::Result<()> {
    let mut log = AppendFile::open(disk.clone(), Path::new("/log"))?;
    log.append(b"kept")?;
    log.sync()?;
    log.append(b"and more")
}
