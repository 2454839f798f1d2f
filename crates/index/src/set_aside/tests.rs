use super::*;
use anchorhood_data::name_of;
use anchorhood_storage::{AtomicFile, Forgetful, attack};

const PICTURES: [(&str, &str); 3] = [
    ("/pictures/a/x.png", "a/x.png"),
    ("/pictures/b/x.png", "x.png"),
    ("/pictures/c.png", "x.png"),
];

pub(super) fn key() -> RecordKey {
    RecordKey::new(b"a key of the tests")
}

fn fill(disk: &Forgetful) {
    for (path, _) in PICTURES {
        disk.create_folders(folder_of(Path::new(path))).unwrap();
        AtomicFile::write_on(disk, Path::new(path), path.as_bytes()).unwrap();
    }
}

fn prepared() -> Forgetful {
    let disk = Forgetful::new();
    fill(&disk);
    disk
}

pub(super) fn to_move(path: impl Into<PathBuf>, name: &str) -> ToMove {
    ToMove { path: path.into(), name: name.into(), stamp: None, link: None, kept: None }
}

fn pictures() -> Vec<ToMove> {
    PICTURES.map(|(path, name)| to_move(path, name)).into()
}

fn record() -> PathBuf {
    Path::new("/aside").join(UNDO_FILE)
}

pub(super) fn aside(
    disk: &Arc<dyn FileSystem>,
    images: &[ToMove],
    sources: &[PathBuf],
    folder: &Path,
) -> Result<SetAside, SearchError> {
    set_aside(disk, images, sources, folder, &key(), &mut |_| {})
}

fn move_all(disk: &Arc<dyn FileSystem>) -> Result<SetAside, SearchError> {
    aside(disk, &pictures(), &["/pictures".into()], Path::new("/aside"))
}

fn undo_all(disk: &dyn FileSystem) -> Result<PutBack, SearchError> {
    undo(disk, &record(), Some(&key()), false)
}

/// Everything that can happen to a file happens, to the way there and to the way back: no
/// picture is lost or changed, and the same command again brings all of them back.
#[test]
fn no_picture_is_ever_lost() {
    let disks = [(Forgetful::new(), true), (Forgetful::without_rename_new(), false)];
    for (start, renames) in disks {
        fill(&start);
        let there = |disk: Arc<dyn FileSystem>| move_all(&disk).is_ok();
        let all_back = |disk: &Forgetful, what: &str| {
            if disk.exists(&record()) {
                let mut done = undo_all(disk).unwrap_or_else(|e| panic!("{what}: {e}"));
                // Without such a rename, an empty file may have a picture's place, and is
                // named.
                let left = done.left.iter().map(|(path, _)| path);
                for path in left.filter(|_| !renames).cloned().collect::<Vec<_>>() {
                    assert_eq!(disk.length(&path).unwrap(), 0, "{what}");
                    disk.remove(&path).unwrap();
                    done = undo_all(disk).unwrap();
                }
                assert_eq!(done.left, [], "{what}");
            }
            for (path, _) in PICTURES {
                let bytes = disk.read(Path::new(path));
                assert_eq!(bytes.unwrap(), path.as_bytes(), "{what}: {path}");
            }
        };
        let mut faults = attack(&start, there, |disk, _, what| all_back(disk, what));
        assert!(there(start.shared()));
        let back = |disk: Arc<dyn FileSystem>| undo_all(&*disk).is_ok();
        faults += attack(&start, back, |disk, _, what| all_back(disk, what));
        println!("{faults} faults");
        assert!(faults > 150, "{faults}");
    }
}

/// An interrupted move goes on in the same record, which is still believed.
#[test]
fn an_interrupted_move_goes_on() {
    let start = prepared();
    let there = |disk: Arc<dyn FileSystem>| move_all(&disk).is_ok();
    attack(&start, there, |disk, _, what| {
        move_all(&disk.shared()).unwrap_or_else(|e| panic!("{what}: {e}"));
        let done = undo_all(disk).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(done.left, [], "{what}");
        for (path, _) in PICTURES {
            assert!(disk.exists(Path::new(path)), "{what}: {path}");
        }
    });
}

#[test]
fn names_are_kept_apart_and_nothing_is_overwritten() {
    let disk = prepared();
    let done = move_all(&disk.shared()).unwrap();
    let places: Vec<PathBuf> = done.moved.into_iter().map(|(_, place)| place).collect();
    let expected = ["/aside/a/x.png", "/aside/x.png", "/aside/x (2).png"];
    assert_eq!(places, expected.map(PathBuf::from));
    let again = move_all(&disk.shared()).unwrap();
    assert_eq!((again.moved.len(), again.left.len()), (0, 3));
    AtomicFile::write_on(&disk, Path::new("/pictures/c.png"), b"another").unwrap();
    let done = undo_all(&disk).unwrap();
    assert_eq!((done.moved, done.there, done.left.len()), (2, 0, 1));
    assert!(done.left[0].1.contains("nothing is overwritten"));
    assert_eq!(disk.read(Path::new("/pictures/c.png")).unwrap(), b"another");
    let again = undo_all(&disk).unwrap();
    assert_eq!((again.moved, again.there, again.left.len()), (0, 2, 1));
}

#[test]
fn names_that_lead_out_are_moved_below_the_target() {
    for name in ["/pictures/c.png", "../../c.png", "a/../../c.png"] {
        let disk = prepared();
        let images = [to_move("/pictures/gone.png", "g.png"), to_move("/pictures/c.png", name)];
        let target = Path::new("/aside");
        let done = aside(&disk.shared(), &images, &[], target).unwrap();
        assert_eq!(done.left.len(), 1, "one bad line does not stop the others");
        let place = &done.moved[0].1;
        assert!(place.starts_with(target) && place.file_name() == Path::new(name).file_name());
        assert!(!disk.exists(Path::new("/pictures/c.png")));
        let back = undo_all(&disk).unwrap();
        assert_eq!((back.moved, back.left.len()), (1, 0), "{name}");
        assert!(disk.exists(Path::new("/pictures/c.png")));
    }
}

#[test]
fn a_file_that_changed_since_it_was_compared_stays() {
    let disk = prepared();
    let path = Path::new("/pictures/c.png");
    let mut image = to_move(path, "c.png");
    image.stamp = Some(disk.stamp(path).unwrap());
    AtomicFile::write_on(&disk, path, b"another").unwrap();
    // And one whose kept image is another now, or gone.
    let mut images = vec![image];
    for kept in ["/pictures/c.png", "/pictures/gone.png"] {
        let mut copy = to_move("/pictures/a/x.png", "x.png");
        copy.kept = Some((kept.into(), images[0].stamp.unwrap()));
        images.push(copy);
    }
    let done = aside(&disk.shared(), &images, &[], Path::new("/aside"));
    assert_eq!(done.unwrap().left.len(), 3);
    assert_eq!(disk.read(path).unwrap(), b"another");
    assert!(!disk.exists(Path::new("/aside")));
}

/// An older line of the record does not claim an image that was given its name since.
#[test]
fn a_name_belongs_to_the_image_that_was_given_it_last() {
    let disk = prepared();
    let (x, y) = (Path::new("/pictures/x.png"), Path::new("/pictures/y.png"));
    let target = Path::new("/aside");
    for path in [x, y] {
        AtomicFile::write_on(&disk, path, name_of(path.as_os_str()).as_bytes()).unwrap();
        aside(&disk.shared(), &[to_move(path, "s.png")], &[], target).unwrap();
        if path == x {
            disk.rename(&target.join("s.png"), Path::new("/pictures/kept.png")).unwrap();
        }
    }
    // Its own place was taken meanwhile, so that it stays; the first is nowhere, and does not
    // get it.
    AtomicFile::write_on(&disk, y, b"another").unwrap();
    let done = undo_all(&disk).unwrap();
    assert_eq!((done.moved, done.left.len()), (0, 2));
    assert!(!disk.exists(x));
}

#[test]
fn records_that_are_none_are_refused() {
    let read = |text: &str, trust| {
        let disk = Forgetful::new();
        AtomicFile::write_on(&disk, Path::new("/undo.jsonl"), text.as_bytes()).unwrap();
        undo(&disk, Path::new("/undo.jsonl"), Some(&key()), trust)
    };
    assert_eq!(read("", false).unwrap(), PutBack::default());
    let cut = r#"{"from":"/a","to":"b"#;
    assert_eq!(read(cut, false).unwrap(), PutBack::default());
    for none in [format!("{cut}\n"), "rm -rf\n".into()] {
        let refused = read(&none, true).unwrap_err();
        assert!(matches!(refused, SearchError::Impossible(_)), "{refused}");
    }
    for out in ["../x", "/etc/passwd", "a/../../b", ""] {
        let text = format!("{{\"from\":\"/a\",\"to\":\"{out}\"}}\n");
        let refused = read(&text, false).unwrap_err();
        assert!(matches!(refused, SearchError::UnconfirmedRecord { .. }));
        assert_eq!(read(&text, true).unwrap().left.len(), 1, "{out}");
    }
}
