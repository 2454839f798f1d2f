//! A disk in memory that forgets what was not synced when its power is cut.
//!
//! Of each file it knows what was written and what of that was synced, of each folder the same of
//! its names. What a real disk keeps beyond what was synced is its own choice, so a test tries
//! several ([`Survives`]). A file renamed from one folder into another keeps one of both names, and
//! a sync of either folder makes the rename durable in both: disks with a journal write it as one
//! transaction.
//!
//! It can be made to [fail](Forgetful::failing), too: every operation of a program can be the one
//! that goes wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{FileId, FileStamp, FileSystem, Hold, Kind, WriteFile};

/// What survives a power cut beside what was synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survives {
    /// Nothing.
    Synced,
    /// What was made, renamed and removed; of bytes nothing.
    Names,
    /// Bytes; of what was made, renamed and removed nothing.
    Bytes,
    /// Of each name and each file one thing or the other, as a seed draws it; of a file also a
    /// piece, or zeros.
    Mix(u64),
}

/// What an operation does. Asking what is there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A file or a folder is made, or a file opened to be added to.
    Make,
    /// Bytes are written.
    Write,
    /// A file is cut, sought in, renamed or removed.
    Change,
    /// A file or a folder is synced.
    Sync,
    /// A file is read or mapped.
    Read,
}

/// How an operation goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails, and none after it: a flaky network.
    Once,
    /// It and all later ones fail: what is then on disk is what a kill at this moment leaves.
    Killed,
    /// Half of a write is done, and nothing after it.
    Torn,
    /// There is no room from here on: half of each write is done, nothing is made; what needs no
    /// room goes on.
    Full,
    /// It cannot be read this time.
    Unreadable,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 5] =
        [Fault::Once, Fault::Killed, Fault::Torn, Fault::Full, Fault::Unreadable];

    /// Whether an operation can go wrong in this way, other than in one of those before.
    pub fn concerns(self, operation: Operation) -> bool {
        match self {
            Fault::Once => operation != Operation::Read,
            Fault::Killed => true,
            Fault::Torn => operation == Operation::Write,
            Fault::Full => matches!(operation, Operation::Make | Operation::Write),
            Fault::Unreadable => operation == Operation::Read,
        }
    }

    /// Whether operation `now` fails where `n` is the one that goes wrong.
    fn hits(self, n: usize, now: usize, operation: Operation) -> bool {
        match self {
            Fault::Once | Fault::Unreadable => now == n,
            Fault::Killed | Fault::Torn => now >= n,
            Fault::Full => now >= n && self.concerns(operation),
        }
    }

    /// How much of so many bytes a write does that fails.
    fn done(self, n: usize, now: usize, bytes: usize) -> usize {
        match self {
            Fault::Once | Fault::Full => bytes / 2,
            Fault::Torn if now == n => bytes / 2,
            Fault::Killed | Fault::Torn | Fault::Unreadable => 0,
        }
    }
}

/// A disk in memory. Copies are one disk; [`Forgetful::power_cut`] makes another.
#[derive(Clone, Debug, Default)]
pub struct Forgetful(Arc<Mutex<Contents>>);

/// Names in a folder, and the node that each is of.
type Names = BTreeMap<OsString, usize>;

#[derive(Clone, Debug)]
enum Node {
    File { now: Vec<u8>, synced: Vec<u8> },
    Folder { now: Names, synced: Names },
}

/// A file or folder that was renamed from a name in one folder to a name in another.
#[derive(Clone, Debug)]
struct Move {
    node: usize,
    from: (usize, OsString),
    to: (usize, OsString),
}

#[derive(Clone, Debug)]
struct Contents {
    /// The first is the root.
    nodes: Vec<Node>,
    held: BTreeSet<usize>,
    /// Whether it renames without replacing.
    rename_new: bool,
    /// Renames from one folder to another of which neither was synced since.
    moves: Vec<Move>,
    /// The operation, counted from 0, that goes wrong.
    fault: Option<(usize, Fault)>,
    log: Vec<Operation>,
}

impl Default for Contents {
    fn default() -> Self {
        Contents {
            nodes: vec![Node::folder()],
            held: BTreeSet::new(),
            rename_new: true,
            moves: vec![],
            fault: None,
            log: vec![],
        }
    }
}

impl Node {
    fn folder() -> Node {
        Node::Folder { now: Names::new(), synced: Names::new() }
    }

    fn file() -> Node {
        Node::File { now: vec![], synced: vec![] }
    }

    fn sync(&mut self) {
        match self {
            Node::File { now, synced } => synced.clone_from(now),
            Node::Folder { now, synced } => synced.clone_from(now),
        }
    }
}

impl Forgetful {
    /// An empty disk.
    pub fn new() -> Forgetful {
        Forgetful::default()
    }

    /// An empty disk that cannot rename without replacing.
    pub fn without_rename_new() -> Forgetful {
        let disk = Forgetful::default();
        disk.contents().rename_new = false;
        disk
    }

    /// The disk as programs are given it.
    pub fn shared(&self) -> Arc<dyn FileSystem> {
        Arc::new(self.clone())
    }

    /// Another disk with the same on it, held by nobody, of which nothing was asked, and without
    /// faults.
    pub fn copy(&self) -> Forgetful {
        let mut contents = self.contents().clone();
        contents.held.clear();
        contents.log.clear();
        contents.fault = None;
        Forgetful(Arc::new(Mutex::new(contents)))
    }

    /// A copy of which operation `n`, counted from 0, goes wrong.
    pub fn failing(&self, n: usize, fault: Fault) -> Forgetful {
        let disk = self.copy();
        disk.contents().fault = Some((n, fault));
        disk
    }

    /// What was asked for, in order.
    pub fn log(&self) -> Vec<Operation> {
        self.contents().log.clone()
    }

    /// What is there when power comes back.
    pub fn power_cut(&self, survives: Survives) -> Forgetful {
        let disk = self.copy();
        let mut draws = Draws(match survives {
            Survives::Mix(seed) => seed,
            Survives::Synced | Survives::Names | Survives::Bytes => 0,
        });
        let mut contents = disk.contents();
        for node in &mut contents.nodes {
            match node {
                Node::File { now, synced } => *now = bytes_left(now, synced, survives, &mut draws),
                Node::Folder { now, synced } => {
                    *now = names_left(now, synced, survives, &mut draws);
                }
            }
        }
        for lost in std::mem::take(&mut contents.moves) {
            contents.take_back(lost);
        }
        contents.nodes.iter_mut().for_each(Node::sync);
        drop(contents);
        disk
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is on the disk, for an operation that does not fail.
    fn step(&self, operation: Operation) -> io::Result<MutexGuard<'_, Contents>> {
        let mut contents = self.contents();
        match contents.fails(operation, 0) {
            Some((_, error)) => Err(error),
            None => Ok(contents),
        }
    }

    fn open(&self, node: usize, append: bool) -> OpenFile {
        OpenFile { disk: self.clone(), node, at: 0, append, held: false }
    }
}

fn bytes_left(now: &[u8], synced: &[u8], survives: Survives, draws: &mut Draws) -> Vec<u8> {
    let zeros = || {
        let bytes = (0..now.len()).map(|i| synced.get(i).copied().unwrap_or(0));
        bytes.collect()
    };
    let kept = now.iter().zip(synced).take_while(|(a, b)| a == b).count();
    match survives {
        Survives::Synced | Survives::Names => synced.into(),
        Survives::Bytes => now.into(),
        Survives::Mix(_) => match draws.below(4) {
            0 => synced.into(),
            1 => now.into(),
            2 => zeros(),
            _ => now[..kept + draws.below(now.len() - kept + 1)].into(),
        },
    }
}

fn names_left(now: &Names, synced: &Names, survives: Survives, draws: &mut Draws) -> Names {
    let mut left = |name: &OsString| {
        let now_wins = match survives {
            Survives::Synced | Survives::Bytes => false,
            Survives::Names => true,
            Survives::Mix(_) => draws.below(2) == 0,
        };
        let node = if now_wins { now } else { synced }.get(name)?;
        Some((name.clone(), *node))
    };
    let all: BTreeSet<&OsString> = now.keys().chain(synced.keys()).collect();
    all.into_iter().filter_map(&mut left).collect()
}

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

impl Contents {
    /// Counts an operation; one that fails says how many of its bytes it does all the same.
    fn fails(&mut self, operation: Operation, bytes: usize) -> Option<(usize, io::Error)> {
        let now = self.log.len();
        self.log.push(operation);
        let (n, fault) = self.fault.filter(|(n, fault)| fault.hits(*n, now, operation))?;
        let kind = match fault {
            Fault::Full => io::ErrorKind::StorageFull,
            Fault::Once | Fault::Killed | Fault::Torn | Fault::Unreadable => io::ErrorKind::Other,
        };
        let error = io::Error::new(kind, format!("operation {now} was made to fail"));
        Some((fault.done(n, now, bytes), error))
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        let mut at = 0;
        for part in path.components() {
            at = match part {
                Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
                Component::ParentDir => return Err(wrong("this disk knows no way up")),
                Component::Normal(name) => *self.names(at)?.get(name).ok_or_else(missing)?,
            };
        }
        Ok(at)
    }

    fn names(&self, node: usize) -> io::Result<&Names> {
        match &self.nodes[node] {
            Node::Folder { now, .. } => Ok(now),
            Node::File { .. } => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn bytes(&self, node: usize) -> io::Result<&Vec<u8>> {
        match &self.nodes[node] {
            Node::File { now, .. } => Ok(now),
            Node::Folder { .. } => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn bytes_mut(&mut self, node: usize) -> io::Result<&mut Vec<u8>> {
        match &mut self.nodes[node] {
            Node::File { now, .. } => Ok(now),
            Node::Folder { .. } => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    /// The names beside a path's own, and its own.
    fn beside(&mut self, path: &Path) -> io::Result<(&mut Names, OsString)> {
        let name = path.file_name().ok_or_else(|| wrong("is no name"))?;
        let folder = self.find(path.parent().unwrap_or(Path::new("")))?;
        let (now, _) = self.both_names(folder).ok_or(io::ErrorKind::NotADirectory)?;
        Ok((now, name.to_owned()))
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = self.find(from)?;
        let folders = [from, to].map(|path| self.find(path.parent().unwrap_or(Path::new(""))));
        self.beside(to)?;
        self.take(from)?;
        let (names, name) = self.beside(to)?;
        names.insert(name.clone(), node);
        let [from_folder, to_folder] = folders;
        let (from_folder, to_folder) = (from_folder?, to_folder?);
        if from_folder != to_folder {
            self.moves.push(Move {
                node,
                from: (from_folder, from.file_name().unwrap_or_default().into()),
                to: (to_folder, name),
            });
        }
        Ok(())
    }

    /// The names that survive a power cut in a folder, and those that are there now.
    fn both_names(&mut self, folder: usize) -> Option<(&mut Names, &mut Names)> {
        match &mut self.nodes[folder] {
            Node::Folder { now, synced } => Some((now, synced)),
            Node::File { .. } => None,
        }
    }

    /// Makes the renames out of a folder and into it durable.
    fn sync_moves(&mut self, folder: usize) {
        let concerns = |m: &Move| m.from.0 == folder || m.to.0 == folder;
        let (done, left) = std::mem::take(&mut self.moves).into_iter().partition(concerns);
        self.moves = left;
        let done: Vec<Move> = done;
        for Move { node, from, to } in done {
            if let Some((_, synced)) = self.both_names(from.0) {
                synced.retain(|name, of| *name != from.1 || *of != node);
            }
            if let Some((now, synced)) = self.both_names(to.0)
                && now.get(&to.1) == Some(&node)
            {
                synced.insert(to.1, node);
            }
        }
    }

    /// After a power cut: a file that a rename left without a name has its old one.
    fn take_back(&mut self, lost: Move) {
        let Move { node, from, to } = lost;
        let there = |contents: &mut Contents, (folder, name): &(usize, OsString)| {
            let names = contents.both_names(*folder);
            names.is_some_and(|(now, _)| now.get(name) == Some(&node))
        };
        if !there(self, &from)
            && !there(self, &to)
            && let Some((now, _)) = self.both_names(from.0)
        {
            now.insert(from.1, node);
        }
    }

    fn make(&mut self, path: &Path, node: Node) -> io::Result<usize> {
        let number = self.nodes.len();
        let (names, name) = self.beside(path)?;
        if names.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        names.insert(name, number);
        self.nodes.push(node);
        Ok(number)
    }

    fn take(&mut self, path: &Path) -> io::Result<usize> {
        let (names, name) = self.beside(path)?;
        names.remove(&name).ok_or_else(missing)
    }
}

/// An open file of it.
#[derive(Debug)]
struct OpenFile {
    disk: Forgetful,
    node: usize,
    at: usize,
    append: bool,
    held: bool,
}

impl Write for OpenFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut contents = self.disk.contents();
        let failed = contents.fails(Operation::Write, bytes.len());
        let bytes = &bytes[..failed.as_ref().map_or(bytes.len(), |(done, _)| *done)];
        let now = contents.bytes_mut(self.node)?;
        let at = if self.append { now.len() } else { self.at };
        let end = at + bytes.len();
        now.resize(now.len().max(end), 0);
        now[at..end].copy_from_slice(bytes);
        self.at = end;
        failed.map_or(Ok(bytes.len()), |(_, error)| Err(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for OpenFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let length = self.disk.step(Operation::Change)?.bytes(self.node)?.len();
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::End(by) => (length as u64).checked_add_signed(by),
            SeekFrom::Current(by) => (self.at as u64).checked_add_signed(by),
        };
        let place = place.ok_or_else(|| wrong("is before the beginning"))?;
        self.at = place as usize;
        Ok(place)
    }
}

impl WriteFile for OpenFile {
    fn sync(&mut self) -> io::Result<()> {
        self.disk.step(Operation::Sync)?.nodes[self.node].sync();
        Ok(())
    }

    fn hold(&mut self) -> bool {
        self.held = self.held || self.disk.contents().held.insert(self.node);
        self.held
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if self.held {
            self.disk.contents().held.remove(&self.node);
        }
    }
}

/// A held folder is an open file that nobody writes to.
impl Hold for OpenFile {}

impl FileSystem for Forgetful {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let node = self.step(Operation::Make)?.make(path, Node::file())?;
        let mut file = self.open(node, false);
        file.hold();
        Ok(Box::new(file))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let mut contents = self.step(Operation::Make)?;
        let node = match contents.find(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => contents.make(path, Node::file()),
            other => other,
        }?;
        contents.bytes(node)?;
        Ok(Box::new(self.open(node, true)))
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        let mut contents = self.step(Operation::Change)?;
        let node = contents.find(path)?;
        contents.bytes_mut(node)?.resize(length as usize, 0);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut contents = self.step(Operation::Change)?;
        let node = contents.find(from)?;
        if let Ok(there) = contents.find(to) {
            let replaces = contents.bytes(there).and(contents.bytes(node));
            replaces.map_err(|_| io::Error::from(io::ErrorKind::AlreadyExists))?;
        }
        contents.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut contents = self.step(Operation::Change)?;
        if !contents.rename_new {
            return Err(io::ErrorKind::Unsupported.into());
        }
        contents.find(from)?;
        if contents.find(to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        contents.rename(from, to)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut contents = self.step(Operation::Sync)?;
        let node = contents.find(folder)?;
        contents.names(node)?;
        contents.sync_moves(node);
        contents.nodes[node].sync();
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut contents = self.step(Operation::Change)?;
        let node = contents.find(path)?;
        contents.bytes(node)?;
        contents.take(path).map(|_| ())
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.step(Operation::Make)?.make(path, Node::folder()).map(|_| ())
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let mut contents = self.step(Operation::Change)?;
        let node = contents.find(path)?;
        contents.names(node)?;
        contents.take(path).map(|_| ())
    }

    fn hold_folder(&self, folder: &Path) -> io::Result<Option<Box<dyn Hold>>> {
        let node = self.contents().find(folder)?;
        let mut open = self.open(node, false);
        Ok(open.hold().then(|| Box::new(open) as Box<dyn Hold>))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let contents = self.step(Operation::Read)?;
        contents.bytes(contents.find(path)?).cloned()
    }

    fn kind(&self, path: &Path) -> io::Result<Kind> {
        let contents = self.contents();
        match contents.find(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Kind::Nothing),
            Err(e) => Err(e),
            Ok(node) => Ok(match contents.nodes[node] {
                Node::File { .. } => Kind::File,
                Node::Folder { .. } => Kind::Folder,
            }),
        }
    }

    fn read_link(&self, _: &Path) -> io::Result<Option<PathBuf>> {
        Ok(None) // this disk has no symbolic links
    }

    fn stamp(&self, path: &Path) -> io::Result<FileStamp> {
        let contents = self.contents();
        let node = contents.find(path)?;
        Ok(FileStamp {
            id: FileId { device: 0, inode: node as u64 },
            length: contents.bytes(node).map_or(0, Vec::len) as u64,
            modified: None,
        })
    }

    fn is_held(&self, path: &Path) -> Option<bool> {
        let contents = self.contents();
        let node = contents.find(path).ok()?;
        Some(contents.held.contains(&node))
    }

    /// Time stands still here.
    fn age(&self, path: &Path) -> io::Result<Duration> {
        self.contents().find(path).map(|_| Duration::ZERO)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let contents = self.contents();
        let names = contents.names(contents.find(folder)?)?;
        Ok(names.keys().map(|name| folder.join(name)).collect())
    }
}
