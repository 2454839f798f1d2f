use super::*;
use anchorhood_data::name_of;
use anchorhood_storage::{AtomicFile, Forgetful, attack};

const PICTURES: [(&str, &str); 3] = [
    ("/pictures/a/x.png", "a/x.png"),
    ("/pictures/b/x.png", "x.png"),
    ("/pictures/c.png", "x.png"),
];

fn key() -> RecordKey {
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

fn to_move(path: impl Into<PathBuf>, name: &str) -> ToMove {
    ToMove { path: path.into(), name: name.into(), stamp: None, link: None, kept: None }
}

fn pictures() -> Vec<ToMove> {
    PICTURES.map(|(path, name)| to_move(path, name)).into()
}

fn record() -> PathBuf {
    Path::new("/aside").join(UNDO_FILE)
}

fn aside(
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

/// On a real disk, with links and pipes.
#[cfg(unix)]
mod on_disk {
    use std::fs;
    use std::os::unix::fs::symlink;

    use anchorhood_storage::Disk;

    use super::*;

    /// A folder with these files, each of which holds its own name.
    fn folder_with(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        for file in files {
            fs::create_dir_all(folder_of(&root.join(file))).unwrap();
            fs::write(root.join(file), file).unwrap();
        }
        (place, root)
    }

    /// Two pictures, moved from `pictures` to `copies`.
    fn moved_on_disk() -> (tempfile::TempDir, PathBuf) {
        let (place, root) = folder_with(&["pictures/a.png", "pictures/b.png"]);
        let images = ["a.png", "b.png"].map(|name| to_move(root.join("pictures").join(name), name));
        let done = aside(&Disk::shared(), &images, &[root.join("pictures")], &root.join("copies"));
        assert_eq!(done.unwrap().moved.len(), 2);
        (place, root)
    }

    fn undone(root: &Path, record: &str, trust: bool) -> Result<PutBack, SearchError> {
        undo(&Disk, &root.join(record), Some(&key()), trust)
    }

    #[test]
    fn a_forged_record_moves_nothing_and_a_trusted_one_follows_no_link() {
        let (_place, root) = folder_with(&["private/key", "start/mine", "copies/program"]);
        symlink(root.join("private"), root.join("copies/link")).unwrap();
        symlink(root.join("start"), root.join("copies/out")).unwrap();
        let line = |from: &str, to: &str| {
            let from = root.join(from);
            format!("{{\"from\":\"{}\",\"to\":\"{to}\"}}\n", from.display())
        };
        let forged = line("stolen", "link/key") + &line("copies/out/program", "program");
        let record = "copies/undo.jsonl";
        let nothing = || {
            assert!(root.join("private/key").exists() && root.join("copies/program").exists());
        };
        fs::write(root.join(record), &forged).unwrap();
        let refused = undone(&root, record, false).unwrap_err();
        let SearchError::UnconfirmedRecord { moves, .. } = refused else {
            panic!("{refused}");
        };
        assert_eq!(moves.len(), 2);
        nothing();
        let done = undone(&root, record, true).unwrap();
        assert_eq!((done.moved, done.left.len()), (0, 2));
        nothing();
        // Trusted, and without a link, it does what it says.
        fs::write(root.join(record), line("back", "program")).unwrap();
        assert_eq!(undo(&Disk, &root.join(record), None, true).unwrap().moved, 1);
    }

    #[test]
    fn a_line_added_to_a_record_is_refused_and_so_is_a_link_put_in_its_folders() {
        let (_place, root) = moved_on_disk();
        let record = "copies/undo.jsonl";
        let whole = fs::read_to_string(root.join(record)).unwrap();
        let from = root.join("x");
        let added = format!("{whole}{{\"from\":\"{}\",\"to\":\"a.png\"}}\n", from.display());
        fs::write(root.join(record), added).unwrap();
        for trust in [false, true] {
            let refused = undone(&root, record, trust).unwrap_err();
            assert!(matches!(refused, SearchError::Impossible(_)), "{refused}");
        }
        assert!(root.join("copies/a.png").exists());
        fs::write(root.join(record), &whole).unwrap();

        // The folder of the pictures leads elsewhere now, and so does a moved picture.
        fs::rename(root.join("copies/a.png"), root.join("a.png")).unwrap();
        symlink(root.join("a.png"), root.join("copies/a.png")).unwrap();
        let done = undone(&root, record, false).unwrap();
        assert_eq!((done.moved, done.left.len()), (1, 1));
        assert!(root.join("a.png").exists() && root.join("pictures/b.png").exists());

        // The record in another folder than it was written in.
        fs::create_dir(root.join("other")).unwrap();
        fs::write(root.join("other/undo.jsonl"), &whole).unwrap();
        let refused = undone(&root, "other/undo.jsonl", false).unwrap_err();
        assert!(matches!(refused, SearchError::UnconfirmedRecord { .. }));
    }

    #[test]
    fn a_source_folder_that_moved_behind_a_link_is_still_its_own() {
        let (_place, root) = moved_on_disk();
        fs::rename(root.join("pictures"), root.join("new home")).unwrap();
        symlink("new home", root.join("pictures")).unwrap();
        let done = undone(&root, "copies/undo.jsonl", false).unwrap();
        assert_eq!((done.moved, done.left.len()), (2, 0));
        assert!(root.join("new home/a.png").exists());
    }

    #[test]
    fn a_target_among_the_images_is_refused_however_it_is_named() {
        let (_place, root) = folder_with(&["pictures/a.png"]);
        symlink("pictures", root.join("link")).unwrap();
        symlink("pictures/not yet", root.join("dangling")).unwrap();
        let images = [to_move(root.join("pictures/a.png"), "a.png")];
        let sources = [root.join("pictures")];
        for inside in
            ["pictures", "link", "link/new/deep", "dangling", "dangling/x", "x/../pictures"]
        {
            let refused =
                aside(&Disk::shared(), &images, &sources, &root.join(inside)).unwrap_err();
            assert!(refused.is_usage(), "{inside}: {refused}");
            assert_eq!(fs::read_dir(root.join("pictures")).unwrap().count(), 1);
        }
        // Of the folder above, a place among the images is not taken.
        let images = [to_move(root.join("pictures/a.png"), "pictures/a.png")];
        let done = aside(&Disk::shared(), &images, &sources, &root);
        assert_eq!(done.unwrap().left.len(), 1);
        assert!(root.join("pictures/a.png").exists());
    }

    /// /dev/shm is another disk on Linux.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_dry_run_names_what_lies_on_another_disk() {
        let (_place, root) = folder_with(&["a.png"]);
        let device = |path: &Path| Disk.stamp(path).ok().map(|stamp| stamp.id.device);
        let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
            return; // a machine without it
        };
        let images = [to_move(root.join("a.png"), "a.png")];
        let target = other.path().join("copies/deep");
        let would = would_set_aside(&Disk::shared(), &images, &[], &target, None).unwrap();
        if device(other.path()) != device(&root) {
            assert_eq!((would.moved.len(), would.left.len()), (0, 1));
            assert_eq!(aside(&Disk::shared(), &images, &[], &target).unwrap(), would);
            assert!(!target.exists());
        }
    }

    /// What a list, or a link to a folder, names lies elsewhere than the list.
    #[test]
    fn a_target_inside_any_of_the_sources_is_refused() {
        let (_place, root) = folder_with(&["photos/sub/a.png", "photos2/b.png", "list/c.png"]);
        symlink("../photos2", root.join("photos/link")).unwrap();
        let sources = ["photos/sub", "photos/link", "photos"].map(|folder| root.join(folder));
        let would =
            |to: &str| would_set_aside(&Disk::shared(), &[], &sources, &root.join(to), None);
        for inside in ["photos/copies", "photos2/copies", "photos/sub"] {
            assert!(would(inside).unwrap_err().is_usage(), "{inside}");
        }
        for free in ["photos3", "list/copies", "copies"] {
            would(free).unwrap();
        }
    }

    #[test]
    fn links_and_what_is_no_file_are_left_and_named() {
        let (_place, root) = folder_with(&["good.png", "folder.png/a", "x.png"]);
        symlink("x.png", root.join("link.png")).unwrap();
        let names = ["link.png", "gone.png", "folder.png", "good.png"];
        let images = names.map(|name| to_move(root.join(name), name));
        let (disk, target) = (Disk::shared(), root.join("aside"));
        let would = would_set_aside(&disk, &images, &[], &target, None).unwrap();
        assert!(!target.exists() && would.moved.len() == 1 && would.left.len() == 3);
        let done = aside(&disk, &images[..3], &[], &target).unwrap();
        assert_eq!((done.moved.len(), done.left.len()), (0, 3));
        assert!(!target.exists());
        assert_eq!(aside(&disk, &images, &[], &target).unwrap(), would);

        // A record that is a link or a pipe is not written to.
        for other in ["to link", "to pipe"] {
            let target = root.join(other);
            fs::create_dir(&target).unwrap();
            let record = target.join(UNDO_FILE);
            match other {
                "to link" => symlink(root.join("x.png"), record).unwrap(),
                _ => {
                    let made = std::process::Command::new("mkfifo").arg(record).status();
                    assert!(made.unwrap().success());
                }
            }
            let images = [to_move(target.join("y.png"), "y.png")];
            fs::write(&images[0].path, "y").unwrap();
            assert!(aside(&disk, &images, &[], &target).unwrap_err().is_usage());
            let would = would_set_aside(&disk, &images, &[], &target, Some(&key()));
            assert!(would.unwrap_err().is_usage());
            assert_eq!(fs::read(root.join("x.png")).unwrap(), b"x.png");
        }
    }
}
