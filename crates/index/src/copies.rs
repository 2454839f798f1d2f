//! The duplicates of an index, or of an index among those of another, for every front end: each
//! file is compared once however it is named, decisions of the user count, and what is moved is
//! what was compared.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use crate::curate::{
    Compared, DuplicateGroup, DuplicateOptions, DuplicateStage, Duplicates, Look, find_duplicates,
};
use anchorhood_data::{PREPROCESSING, is_member};
use anchorhood_engine::Device;
use anchorhood_storage::{Disk, FileId, FileStamp, FileSystem, folder_of, resolve};
use rayon::prelude::*;

use crate::folders::place;
use crate::stream::content_sum;
use crate::{DecidedImage, Decisions, IndexParts, PictureIndex, SearchError, ToMove};

/// The images to compare: those of one index by their numbers, and after them those of another that
/// they are compared with.
#[derive(Debug)]
pub struct CopySearch<'a> {
    index: &'a PictureIndex,
    against: Option<&'a PictureIndex>,
    paths: Vec<PathBuf>,
    /// The files as they were before they were read.
    stamps: Vec<Option<FileStamp>>,
    /// Of each image the one whose name stands for its file: itself, unless another name of the
    /// same file does.
    stands_for: Vec<usize>,
}

impl<'a> CopySearch<'a> {
    /// The images of an index, or those that are compared with `against`. Two indices of different
    /// models, or whose folders hold the same files, are refused.
    pub fn new(
        index: &'a PictureIndex,
        against: Option<&'a PictureIndex>,
    ) -> Result<CopySearch<'a>, SearchError> {
        if let Some(against) = against {
            same_model(index, against)?;
        }
        let of = |index: &'a PictureIndex| (0..index.len()).map(|i| index.picture(i));
        let paths: Vec<PathBuf> = of(index).chain(against.into_iter().flat_map(of)).collect();
        let stamps = paths.par_iter().map(|path| Disk.stamp(path).ok()).collect();
        let mut search =
            CopySearch { stands_for: (0..paths.len()).collect(), index, against, paths, stamps };
        let shared = search.join_names();
        match against {
            Some(against) => refuse_overlap(index, against, shared).map(|()| search),
            None => Ok(search),
        }
    }

    /// Finds the names of one file: a link, a hard link, a folder that is named twice. Says whether
    /// both indices have a file.
    fn join_names(&mut self) -> bool {
        let mut names: HashMap<FileId, Vec<usize>> = HashMap::new();
        for (i, stamp) in self.stamps.iter().enumerate() {
            if let Some(stamp) = stamp {
                names.entry(stamp.id).or_default().push(i);
            }
        }
        let mut shared = false;
        for names in names.into_values().filter(|names| names.len() > 1) {
            shared |= self.is_other(names[names.len() - 1]) && !self.is_other(names[0]);
            // What is kept is among the others, and a file's own name comes before a link to it.
            let linked = |i: usize| resolve(&self.paths[i]).ok().as_ref() != Some(&self.paths[i]);
            let first = names.iter().min_by_key(|i| (!self.is_other(**i), linked(**i), **i));
            if let Some(first) = first.copied() {
                names.into_iter().for_each(|i| self.stands_for[i] = first);
            }
        }
        shared
    }

    /// How many images.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// How many names are other names of a file that is compared under one of them.
    pub fn other_names(&self) -> usize {
        let other = |(i, first): (usize, &usize)| i != *first;
        self.stands_for.iter().enumerate().filter(|pair| other(*pair)).count()
    }

    /// The index that an image is of, and its number there.
    pub fn at(&self, i: usize) -> (&'a PictureIndex, usize) {
        match self.against {
            Some(against) if self.is_other(i) => (against, i - self.index.len()),
            _ => (self.index, i),
        }
    }

    /// As it is shown: two indices may have the same names.
    pub fn name(&self, i: usize) -> String {
        let (index, own) = self.at(i);
        match self.against {
            Some(_) => anchorhood_data::name_of(self.paths[i].as_os_str()),
            None => index.name(own).into(),
        }
    }

    /// Where an image lies.
    pub fn path(&self, i: usize) -> &Path {
        &self.paths[i]
    }

    /// The folders that images were looked for in, and those of all images: a list, or a link to a
    /// folder, may name images that lie elsewhere.
    pub fn folders(&self) -> Vec<PathBuf> {
        let indices = [Some(self.index), self.against].into_iter().flatten();
        let folders = indices.flat_map(|index| index.folders()).filter(|folder| !folder.of_list);
        let images = self.paths.iter().filter(|path| !is_member(path));
        let of_images = images.map(|path| folder_of(path).to_path_buf());
        let all: BTreeSet<PathBuf> = folders.map(|f| f.path).chain(of_images).collect();
        all.into_iter().collect()
    }

    fn is_other(&self, i: usize) -> bool {
        self.against.is_some() && i >= self.index.len()
    }

    /// Finds the duplicates, by the numbers of this search. Of a file with several names, one is
    /// compared and found.
    pub fn find(
        &self,
        device: &Device,
        options: &DuplicateOptions,
        decisions: &Decisions,
        progress: &(dyn Fn(DuplicateStage, usize, usize) + Sync),
    ) -> Result<Duplicates, SearchError> {
        self.find_by(&|i| Look::at(&self.paths[i]), device, options, decisions, progress)
    }

    /// The same of images that `look` looks at, by the numbers of this search.
    pub fn find_by(
        &self,
        look: &(dyn Fn(usize) -> Result<Look, String> + Sync),
        device: &Device,
        options: &DuplicateOptions,
        decisions: &Decisions,
        progress: &(dyn Fn(DuplicateStage, usize, usize) + Sync),
    ) -> Result<Duplicates, SearchError> {
        let one_of_each = |i: &usize| self.stands_for[*i] == *i;
        let numbers: Vec<usize> = (0..self.len()).filter(one_of_each).collect();
        let dim = self.index.parts().dim;
        let vectors = self.vectors(&numbers)?;
        let contents = if decisions.is_empty() { vec![] } else { self.contents() };
        let ranks = self.folder_ranks();
        let not_copies = |a: usize, b: usize| {
            !contents.is_empty() && self.separated(decisions, &contents, numbers[a], numbers[b])
        };
        let compared = Compared {
            look: &|i| look(numbers[i]),
            vectors: &vectors,
            dim,
            against_from: self.against.map(|_| numbers.partition_point(|i| !self.is_other(*i))),
            folder_rank: &|i| ranks[numbers[i]],
            not_copies: &not_copies,
        };
        let found = find_duplicates(device, &compared, options, progress)?;
        Ok(self.renumbered(found, &numbers))
    }

    fn vectors(&self, numbers: &[usize]) -> Result<Cow<'a, [f32]>, SearchError> {
        if self.against.is_none() && numbers.len() == self.len() {
            return Ok(Cow::Borrowed(self.index.vectors()?));
        }
        let mut vectors = Vec::with_capacity(numbers.len() * self.index.parts().dim);
        for i in numbers {
            let (index, own) = self.at(*i);
            vectors.extend_from_slice(index.vector(own)?);
        }
        Ok(Cow::Owned(vectors))
    }

    fn folder_ranks(&self) -> Vec<usize> {
        let folders = [Some(self.index), self.against].map(|i| i.map(PictureIndex::folders));
        let before = folders[0].as_ref().map_or(0, Vec::len);
        let rank = |i: usize| {
            let (index, own) = self.at(i);
            let folders = folders[usize::from(self.is_other(i))].as_deref();
            let folders = folders.unwrap_or_default();
            let (folder, _) = place(folders, index.name(own));
            let at = folders.iter().position(|f| Some(f) == folder);
            at.unwrap_or(folders.len()) + if self.is_other(i) { before } else { 0 }
        };
        (0..self.len()).map(rank).collect()
    }

    /// Checksums of all files: those that the indices know, and of the others what is read.
    fn contents(&self) -> Vec<u64> {
        let content = |i: usize| {
            let (index, own) = self.at(i);
            let known = index.parts().content_sums.as_ref().map_or(0, |sums| sums[own]);
            match known {
                0 => content_sum(&self.paths[i]),
                known => known,
            }
        };
        (0..self.len()).into_par_iter().map(content).collect()
    }

    fn separated(&self, decisions: &Decisions, contents: &[u64], a: usize, b: usize) -> bool {
        let (first, second) = (contents[a], contents[b]);
        if first == 0 || second == 0 || !decisions.knows(first, second) {
            return false;
        }
        match [a, b].map(|i| resolve(&self.paths[i])) {
            [Ok(a), Ok(b)] => decisions.separates((&a, first), (&b, second)),
            _ => false,
        }
    }

    fn renumbered(&self, mut found: Duplicates, numbers: &[usize]) -> Duplicates {
        for group in &mut found.groups {
            group.keep = numbers[group.keep];
            for other in &mut group.others {
                other.picture = numbers[other.picture];
            }
        }
        for i in found.bursts.iter_mut().flatten() {
            *i = numbers[*i];
        }
        if numbers.len() < self.len() {
            let look = |i: &usize| match numbers.binary_search(i) {
                Ok(k) => found.looks[k].clone(),
                Err(_) => Err("it was not compared".into()),
            };
            found.looks = self.stands_for.iter().map(look).collect();
        }
        found
    }

    /// All but the kept image of each group, to be moved as they were when they were compared.
    pub fn to_move(&self, groups: &[DuplicateGroup]) -> Vec<ToMove> {
        let others = self.stands_for.iter().enumerate().filter(|(i, first)| i != *first);
        let is_link = |i: usize| !matches!(Disk.read_link(&self.paths[i]), Ok(None));
        let links: HashMap<usize, usize> =
            others.filter(|(i, _)| is_link(*i)).map(|(i, first)| (*first, i)).collect();
        let image = |i: usize, keep: usize| {
            let (index, own) = self.at(i);
            ToMove {
                path: self.paths[i].clone(),
                name: index.name(own).into(),
                stamp: self.stamps[i],
                link: links.get(&i).map(|link| self.paths[*link].clone()),
                kept: self.stamps[keep].map(|stamp| (self.paths[keep].clone(), stamp)),
            }
        };
        let of_group = |group: &DuplicateGroup| {
            let others = group.others.iter();
            let images = others.map(|other| image(other.picture, group.keep));
            images.collect::<Vec<_>>()
        };
        groups.iter().flat_map(of_group).collect()
    }

    /// The number of an image by its name as it is shown or in its index, or by its path.
    pub fn number(&self, word: &str) -> Result<usize, SearchError> {
        let named = |i: &usize| {
            let (index, own) = self.at(*i);
            index.name(own) == word || self.name(*i) == word
        };
        let file = || {
            let id = Disk.stamp(Path::new(word)).ok()?.id;
            let is_it = |stamp: &Option<FileStamp>| stamp.is_some_and(|s| s.id == id);
            self.stamps.iter().position(is_it)
        };
        let found = (0..self.len()).find(named).or_else(file);
        found.ok_or_else(|| {
            SearchError::Impossible(format!(
                "{word}: there is no such image in the index; names are as `duplicates` prints them"
            ))
        })
    }

    /// Two images as a decision means them.
    pub fn decided(&self, a: usize, b: usize) -> Result<[DecidedImage; 2], SearchError> {
        if self.stands_for[a] == self.stands_for[b] {
            return Err(SearchError::Impossible(format!(
                "{} and {}: these are one file",
                self.name(a),
                self.name(b)
            )));
        }
        Ok([self.decided_image(a)?, self.decided_image(b)?])
    }

    fn decided_image(&self, i: usize) -> Result<DecidedImage, SearchError> {
        let path = &self.paths[i];
        let content = content_sum(path);
        if content == 0 {
            return Err(SearchError::bad_picture(path, "it cannot be read"));
        }
        let (index, own) = self.at(i);
        let folders = index.folders();
        let folder = place(&folders, index.name(own)).0.map(|f| &*f.path);
        let resolved = |path: &Path| resolve(path).map_err(SearchError::io(path));
        let at = resolved(path)?;
        let folder = folder.map(resolved).transpose()?;
        let around = folder.filter(|folder| at.starts_with(folder));
        Ok(DecidedImage { folder: around.unwrap_or_else(|| folder_of(&at).into()), content })
    }
}

fn same_model(index: &PictureIndex, against: &PictureIndex) -> Result<(), SearchError> {
    let of = |index: &PictureIndex| {
        let IndexParts { model, layer, preprocessing, .. } = index.parts();
        (model.clone(), layer.clone(), preprocessing.map_or(PREPROCESSING, |p| p.version))
    };
    match of(index) == of(against) {
        true => Ok(()),
        false => Err(SearchError::Impossible(format!(
            "{} and {}: these indices were made with different models or versions of the program, whose vectors cannot be compared; \
             make one of them again",
            index.path().display(),
            against.path().display()
        ))),
    }
}

/// Refuses folders of which one is the other or lies in it, where they share files. Lists that are
/// seen from one folder need not.
fn refuse_overlap(
    index: &PictureIndex,
    against: &PictureIndex,
    shared: bool,
) -> Result<(), SearchError> {
    for a in index.folders() {
        for b in against.folders() {
            let [whole_a, whole_b] = [&a.path, &b.path].map(|path| resolve(path));
            let (Ok(whole_a), Ok(whole_b)) = (whole_a, whole_b) else {
                continue;
            };
            let nested = whole_a.starts_with(&whole_b) || whole_b.starts_with(&whole_a);
            let archive = whole_a.is_file() && whole_a == whole_b;
            if archive || (nested && shared) {
                return Err(SearchError::Impossible(format!(
                    "{} and {}: these overlap, and an image is no copy of itself; name two folders that share no file",
                    a.path.display(),
                    b.path.display()
                )));
            }
        }
    }
    Ok(())
}
