//! Which pairs are worth a comparison: near by their hashes, by their vectors or by their colours.
//!
//! Of scans of one form, or of a camera that stands still, all hashes may be near, and few of the
//! pairs are copies, which would settle others. So of each image the nearest by hashes are
//! proposed, and no more, and a batch holds a bounded number of pairs that are still open.

use std::collections::HashSet;

use anchorhood_engine::{Device, Scan};
use rayon::prelude::*;

use super::colours::COLOURS;
use super::look::View;
use super::perceptual_hash::{NearHashes, PerceptualHash};
use super::{Compared, DuplicateOptions, Equal, Look};
use crate::SearchError;

/// Pairs of a batch, after which it is looked which of the next are settled by them.
const AT_A_TIME: usize = 1 << 14;
/// Of each image so many of those after it are proposed by their hashes.
pub(super) const MOST_NEAR: usize = 32;
/// Images whose near hashes are asked for at the same time.
const IMAGES_AT_A_TIME: usize = 16;

/// Pairs that may be the same, each once and in order, the lower number first.
pub(super) struct Proposals<'a> {
    looks: &'a [Result<Look, String>],
    equal: &'a Equal,
    against_from: Option<usize>,
    hashes: NearHashes,
    /// Of every image those after it that are near by vector or colours, in order.
    near: Vec<Vec<u32>>,
    /// Whether it speaks for all images with the same pixels.
    speaks: Vec<bool>,
    next: usize,
}

impl<'a> Proposals<'a> {
    pub fn new(
        device: &Device,
        compared: &Compared,
        looks: &'a [Result<Look, String>],
        equal: &'a Equal,
        options: &DuplicateOptions,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Self, SearchError> {
        let from = compared.against_from;
        let mut spoken = HashSet::new();
        let mut speaks = |i: usize| {
            let readable = looks[i].as_ref().is_ok_and(|look| !look.flat);
            readable && spoken.insert((equal.first[i], is_other(from, i)))
        };
        let speaks: Vec<bool> = (0..looks.len()).map(&mut speaks).collect();
        let open: Vec<usize> = (0..looks.len()).filter(|i| speaks[*i]).collect();
        let hash = |i: &usize| {
            let views = looks[*i].as_ref().into_iter().flat_map(Look::views);
            views.map(|view| (*i as u32, view.hashes[0])).collect::<Vec<_>>()
        };
        let hashes: Vec<(u32, PerceptualHash)> = open.iter().flat_map(hash).collect();
        let mut proposals = Proposals {
            hashes: NearHashes::new(&hashes),
            near: vec![vec![]; looks.len()],
            looks,
            equal,
            against_from: from,
            speaks,
            next: 0,
        };
        proposals.add_nearest(device, compared, &open, options, progress)?;
        Ok(proposals)
    }

    /// The nearest of each by vectors, and of each view by colours.
    fn add_nearest(
        &mut self,
        device: &Device,
        compared: &Compared,
        open: &[usize],
        options: &DuplicateOptions,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<(), SearchError> {
        let vector = |i: usize| &compared.vectors[i * compared.dim..][..compared.dim];
        let vectors: Vec<(usize, &[f32])> = open.iter().map(|i| (*i, vector(*i))).collect();
        let looks = self.looks;
        let colours = |i: usize| {
            let views = looks[i].as_ref().into_iter().flat_map(Look::views);
            views.map(move |view: &View| (i, view.colours.as_slice()))
        };
        let colours: Vec<(usize, &[f32])> = open.iter().flat_map(|i| colours(*i)).collect();
        for (dim, rows) in [(compared.dim, vectors), (COLOURS, colours)] {
            let (others, first): (Vec<_>, Vec<_>) =
                rows.into_iter().partition(|(i, _)| is_other(self.against_from, *i));
            let sides = match self.against_from {
                None => vec![(&first, &first)],
                Some(_) => vec![(&first, &others), (&others, &first)],
            };
            for (queries, keys) in sides {
                for (a, b) in nearest(device, dim, queries, keys, options.nearest, progress)? {
                    if self.wanted(a as usize, b as usize) {
                        self.near[a.min(b) as usize].push(a.max(b));
                    }
                }
            }
        }
        self.near.par_iter_mut().for_each(|near| {
            near.sort_unstable();
            near.dedup();
        });
        Ok(())
    }

    fn wanted(&self, a: usize, b: usize) -> bool {
        let from = self.against_from;
        let sides = from.is_none() || is_other(from, a) != is_other(from, b);
        sides && self.equal.first[a] != self.equal.first[b]
    }

    /// How many images have been asked for their pairs.
    pub fn done(&self) -> usize {
        self.next
    }

    /// The next pairs that are not settled; none where there are no more.
    pub fn batch(
        &mut self,
        is_settled: impl Fn(usize, usize) -> bool + Sync,
    ) -> Option<Vec<(u32, u32)>> {
        let mut batch = vec![];
        while self.next < self.looks.len() && batch.len() < AT_A_TIME {
            let end = (self.next + IMAGES_AT_A_TIME).min(self.looks.len());
            let pairs: Vec<Vec<(u32, u32)>> =
                (self.next..end).into_par_iter().map(|i| self.pairs_of(i, &is_settled)).collect();
            batch.extend(pairs.into_iter().flatten());
            self.next = end;
        }
        (!batch.is_empty()).then_some(batch)
    }

    fn pairs_of(
        &self,
        i: usize,
        is_settled: &(dyn Fn(usize, usize) -> bool + Sync),
    ) -> Vec<(u32, u32)> {
        let Some(look) = self.looks[i].as_ref().ok().filter(|_| self.speaks[i]) else {
            return vec![];
        };
        let open = |j: u32| self.wanted(i, j as usize) && !is_settled(i, j as usize);
        let hashes: Vec<PerceptualHash> = look.views().flat_map(|view| view.hashes).collect();
        let mut found = self.hashes.near(&hashes, i as u32, MOST_NEAR, open);
        found.extend(self.near[i].iter().filter(|j| open(**j)));
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(|j| (i as u32, j)).collect()
    }
}

pub(super) fn is_other(against_from: Option<usize>, i: usize) -> bool {
    against_from.is_some_and(|from| i >= from)
}

/// The images of the nearest keys of each query, by rows of `dim` values.
fn nearest(
    device: &Device,
    dim: usize,
    queries: &[(usize, &[f32])],
    keys: &[(usize, &[f32])],
    nearest: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<(u32, u32)>, SearchError> {
    let rows = |of: &[(usize, &[f32])]| -> Vec<f32> {
        of.iter().flat_map(|(_, row)| *row).copied().collect()
    };
    // One more, where each finds itself.
    let k = (nearest + 1).min(keys.len());
    if queries.is_empty() || k == 0 {
        return Ok(vec![]);
    }
    let scan = Scan { dim, entropy_temperature: None, k, same: false };
    let (asked, kept) = (device.upload(&rows(queries))?, device.upload(&rows(keys))?);
    let found = device.scan(&asked, &kept, &scan, progress)?.neighbours;
    let mut pairs = vec![];
    for (at, (query, _)) in queries.iter().enumerate() {
        let near = found.of(at).iter().map(|key| keys[*key as usize].0);
        let near = near.filter(|key| key != query);
        pairs.extend(near.map(|key| (*query as u32, key as u32)));
    }
    Ok(pairs)
}
