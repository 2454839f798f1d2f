//! On a real disk, with links and pipes.

use std::fs;
use std::os::unix::fs::symlink;

use anchorhood_storage::Disk;

use super::tests::{aside, key, to_move};
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
    for inside in ["pictures", "link", "link/new/deep", "dangling", "dangling/x", "x/../pictures"] {
        let refused = aside(&Disk::shared(), &images, &sources, &root.join(inside)).unwrap_err();
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
    let would = |to: &str| would_set_aside(&Disk::shared(), &[], &sources, &root.join(to), None);
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
