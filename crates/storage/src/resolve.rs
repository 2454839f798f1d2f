//! Which file a name means once links are followed: whether two names are one file, and whether a
//! name stays inside a folder.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use crate::{Disk, FileSystem};

/// Links followed before they are thought to lead in a circle, as Linux counts them.
const MOST_LINKS: usize = 40;

/// Whether two names are one file or folder: the same device and inode after links. Hard links are
/// one file. An error where one of them is not there.
pub fn same_file(a: &Path, b: &Path) -> io::Result<bool> {
    Ok(Disk.stamp(a)?.id == Disk.stamp(b)?.id)
}

/// The absolute path without links, `.` and `..` that a path means. Unlike [`Path::canonicalize`]
/// it need not be there: links are followed as far as there are any, also a link to nothing. Links
/// in a circle are [`ErrorKind::InvalidInput`].
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    resolve_on(&Disk, path)
}

/// The same on any disk.
pub fn resolve_on(disk: &dyn FileSystem, path: &Path) -> io::Result<PathBuf> {
    let whole = std::path::absolute(path)?;
    let mut left: VecDeque<Part> = parts(&whole);
    let (mut resolved, mut links) = (PathBuf::new(), 0);
    while let Some(part) = left.pop_front() {
        match part {
            Part::Root(root) => resolved = root,
            Part::Up => _ = resolved.pop(), // of the root, the root
            Part::Name(name) => {
                let next = resolved.join(name);
                let Some(target) = disk.read_link(&next)? else {
                    resolved = next;
                    continue;
                };
                links += 1;
                if links > MOST_LINKS {
                    let why = format!("{}: symbolic links lead in a circle", path.display());
                    return Err(io::Error::new(ErrorKind::InvalidInput, why));
                }
                for part in parts(&target).into_iter().rev() {
                    left.push_front(part);
                }
            }
        }
    }
    Ok(resolved)
}

enum Part {
    Root(PathBuf),
    Up,
    Name(OsString),
}

fn parts(path: &Path) -> VecDeque<Part> {
    let mut prefix = PathBuf::new();
    let part = |part: Component| match part {
        Component::CurDir => None,
        Component::ParentDir => Some(Part::Up),
        Component::Normal(name) => Some(Part::Name(name.into())),
        Component::Prefix(_) => {
            prefix.push(part);
            None
        }
        Component::RootDir => Some(Part::Root(prefix.join(part))),
    };
    path.components().filter_map(part).collect()
}

/// The [resolved](resolve) path of a name in a folder, on any disk. [`ErrorKind::InvalidInput`]
/// where it leads out of the folder, by `..`, by being absolute, or by a link; the folder itself is
/// not inside. Neither need be there. A link that is swapped in afterwards is not noticed: open the
/// path that comes back, not the name.
pub fn resolve_inside_on(disk: &dyn FileSystem, folder: &Path, name: &Path) -> io::Result<PathBuf> {
    let within = resolve_on(disk, folder)?;
    let place = resolve_on(disk, &within.join(name))?;
    if place.starts_with(&within) && place != within {
        return Ok(place);
    }
    let (name, folder) = (name.display(), folder.display());
    let why = format!("{name}: leads out of {folder}");
    Err(io::Error::new(ErrorKind::InvalidInput, why))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A folder `in` with a file `a`, and a file `out` beside it.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir(root.join("in")).unwrap();
        fs::write(root.join("in/a"), "a").unwrap();
        fs::write(root.join("out"), "a").unwrap();
        (place, root)
    }

    #[test]
    fn one_file_under_any_name() {
        let (_place, root) = place();
        symlink("a", root.join("in/link")).unwrap();
        fs::hard_link(root.join("in/a"), root.join("in/hard")).unwrap();
        symlink("in", root.join("beside")).unwrap();
        let a = root.join("in/a");
        for same in ["in/a", "in/link", "in/hard", "beside/a", "in/../in/./a"] {
            assert!(same_file(&a, &root.join(same)).unwrap(), "{same}");
        }
        assert!(!same_file(&a, &root.join("out")).unwrap());
        let gone = same_file(&a, &root.join("gone")).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_path_that_is_not_there_resolves_through_links() {
        let (_place, root) = place();
        symlink("in", root.join("beside")).unwrap();
        symlink("in/not yet", root.join("dangling")).unwrap();
        let expected = [
            ("beside/new/x", "in/new/x"),
            ("dangling/x", "in/not yet/x"),
            ("beside/../out", "out"),
            ("gone/../out", "out"),
            ("in/./a", "in/a"),
        ];
        for (name, to) in expected {
            assert_eq!(resolve(&root.join(name)).unwrap(), root.join(to), "{name}");
        }
        assert_eq!(resolve(Path::new("/../..")).unwrap(), Path::new("/"));
    }

    #[test]
    fn a_name_stays_inside_its_folder_or_is_refused() {
        let (_place, root) = place();
        let folder = root.join("in");
        symlink("..", folder.join("up")).unwrap();
        symlink(root.join("out"), folder.join("file")).unwrap();
        symlink("a", folder.join("near")).unwrap();
        symlink("two", folder.join("one")).unwrap();
        symlink("one", folder.join("two")).unwrap();
        let inside = |name: &str| resolve_inside_on(&Disk, &folder, Path::new(name));
        for (name, to) in [("a", "a"), ("b/c", "b/c"), ("near", "a"), ("b/../a", "a")] {
            assert_eq!(inside(name).unwrap(), folder.join(to), "{name}");
        }
        assert!(inside(folder.join("a").to_str().unwrap()).is_ok());
        for name in ["../out", "/etc/passwd", "up/out", "file", "one", "one/x", "", ".", "a/.."] {
            assert_eq!(inside(name).unwrap_err().kind(), ErrorKind::InvalidInput, "{name}");
        }
        let beside = resolve_inside_on(&Disk, &root.join("i"), &folder.join("a"));
        assert!(beside.is_err(), "a folder's name is no prefix of letters");
    }
}
