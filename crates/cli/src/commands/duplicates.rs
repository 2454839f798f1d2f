//! `anchorhood duplicates`: pictures of an index that are the same, which of them to keep, and the others moved aside.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anchorhood::curate::{
    Compared, Duplicate, DuplicateGroup, DuplicateOptions, DuplicateStage, Duplicates, Look, Pair,
    find_duplicates, groups, similar_pairs,
};
use anchorhood::engine::Device;
use anchorhood::files::Disk;
use anchorhood::search::{PictureIndex, Sheet, Shown, UNDO_FILE, set_aside, undo};
use clap::Parser;
use serde_json::json;

use crate::commands::folder_job::JobArgs;
use crate::commands::listing::{ListingArgs, warn_of_gone};
use crate::commands::living_index::{IndexedArgs, folders_of};
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::output::{self, counted, grouped};

/// Pictures in a row of the sheet: pairs side by side.
const COLUMNS: usize = 8;
/// Pixels a side of a picture on it.
const TILE: usize = 112;
/// Similarity of vectors from which `--loose` counts pictures as nearly the same.
const LOOSE: f32 = 0.98;

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  anchorhood duplicates ~/pictures
  anchorhood duplicates pictures.index
  anchorhood duplicates pictures.index --sheet groups.png    look before you move anything
  anchorhood duplicates pictures.index --move-to ~/copies    keep one of each group, move the others
  anchorhood duplicates --undo ~/copies/undo.jsonl           and put them back
  anchorhood duplicates train.index --against test.index     which training pictures are test pictures?
  anchorhood duplicates pictures.index --json | jq -r '.others[].path'
  anchorhood duplicates pictures.index --loose --above 0.99  what the vectors alone say

Vectors and hashes propose, pixels decide: the pictures are read, laid on each other, and count as one
where their detail correlates by at least --above. A group is a picture to keep, with the reason, and
its copies: the same file, the same pixels, resized, recompressed, mirrored, or a crop. A crop has at
least half of each side of what it could have. Files and pixels that are equal are always found.")]
pub struct DuplicatesArgs {
    #[command(flatten)]
    pub pictures: IndexedArgs,
    /// How alike two pictures must be that are one: the correlation of their detail [default: 0.75]; with --loose, the similarity of
    /// their vectors [default: 0.98].
    #[arg(long, value_name = "LEAST")]
    pub above: Option<f32>,
    /// How many of each picture's nearest by vectors, and by colours, are compared with it pixel by pixel: more find more crops, and take
    /// longer.
    #[arg(long, default_value_t = DuplicateOptions::default().nearest, value_name = "N", conflicts_with = "loose")]
    pub nearest: usize,
    /// Compare with the pictures of another folder, or of an index made with the same model: which pictures of the first are also in this one? These
    /// are kept, those of the first moved.
    #[arg(long, value_name = "FOLDER", conflicts_with = "loose")]
    pub against: Option<PathBuf>,
    /// Move all but the kept pictures of each group to a folder, made where there is none, with a file that says how to put them back.
    /// Nothing is deleted or overwritten.
    #[arg(long, value_name = "FOLDER", conflicts_with = "loose")]
    pub move_to: Option<PathBuf>,
    /// Put back what was moved; said alone.
    #[arg(long, value_name = "undo.jsonl", exclusive = true)]
    pub undo: Option<PathBuf>,
    /// Pairs by their vectors alone, without reading a picture: many are alike and not the same.
    #[arg(long)]
    pub loose: bool,
    /// With --loose, whole groups of pictures, a line each, instead of pairs.
    #[arg(long, requires = "loose")]
    pub groups: bool,
    #[command(flatten)]
    pub listing: ListingArgs,
}

/// Runs the command.
pub fn run(args: &DuplicatesArgs) -> Result<(), Failure> {
    if let Some(record) = &args.undo {
        return put_back(record);
    }
    if let Some(above) = args.above.filter(|above| !(-1.0..=1.0).contains(above)) {
        return Err(Failure::usage(format!(
            "--above {above}: a correlation or a similarity is between -1 and 1; the same pictures are near 1"
        )));
    }
    args.listing.check()?;
    let index = args.pictures.open(&JobArgs::default())?;
    let against = args.against.as_ref();
    let against = against.map(|other| args.pictures.open_beside(&index, other));
    let against = against.transpose()?;
    let device = args.pictures.device()?;
    match args.loose {
        true => loose(args, &index, &device),
        false => strict(args, &index, against.as_ref(), &device),
    }
}

// ---- pixels decide ----

/// The pictures of one index, or of two, by one number.
struct Both<'a> {
    index: &'a PictureIndex,
    against: Option<&'a PictureIndex>,
}

impl<'a> Both<'a> {
    fn at(&self, i: usize) -> (&'a PictureIndex, usize) {
        match self.against {
            Some(against) if i >= self.index.len() => (against, i - self.index.len()),
            _ => (self.index, i),
        }
    }

    fn len(&self) -> usize {
        self.index.len() + self.against.map_or(0, PictureIndex::len)
    }

    /// As it is shown: two indices may have the same names.
    fn name(&self, i: usize) -> String {
        let (index, own) = self.at(i);
        match self.against {
            Some(_) => index.picture(own).display().to_string(),
            None => index.name(own).into(),
        }
    }
}

fn strict(
    args: &DuplicatesArgs,
    index: &PictureIndex,
    against: Option<&PictureIndex>,
    device: &Device,
) -> Result<(), Failure> {
    if let Some(against) = against {
        same_model(index, against)?;
    }
    let both = Both { index, against };
    if let Some(folder) = &args.move_to {
        outside(folder, index)?;
    }
    let found = compare(args, &both, device)?;
    if let Some(path) = &args.listing.sheet {
        draw(path, &both, &found)?;
    }
    for group in &found.groups {
        output::line(&match args.listing.json {
            true => as_json(&both, &found, group),
            false => as_text(&both, &found, group),
        })?;
    }
    sum_up(&both, &found);
    match &args.move_to {
        Some(folder) => move_others(&both, &found, folder),
        None => Ok(()),
    }
}

fn same_model(index: &PictureIndex, against: &PictureIndex) -> Result<(), Failure> {
    let of = |index: &PictureIndex| (index.parts().model.clone(), index.parts().layer.clone());
    match of(index) == of(against) {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "{} and {}: these indices were made with different models, whose vectors cannot be compared; make one of them again",
            index.path().display(),
            against.path().display()
        ))),
    }
}

/// Pictures moved to a place among the others would be found again.
fn outside(folder: &Path, index: &PictureIndex) -> Result<(), Failure> {
    let whole = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
    let inside = |pictures: &Path| match (whole(folder), whole(pictures)) {
        (Ok(folder), Ok(pictures)) => folder.starts_with(pictures),
        _ => false,
    };
    match index.folders().iter().find(|of| inside(&of.path)) {
        None => Ok(()),
        Some(of) => Err(Failure::usage(format!(
            "--move-to {}: lies in the folder of the pictures, {}, where they would be found again; choose another",
            folder.display(),
            of.path.display()
        ))),
    }
}

fn compare(args: &DuplicatesArgs, both: &Both, device: &Device) -> Result<Duplicates, Failure> {
    let paths: Vec<PathBuf> = (0..both.len())
        .map(|i| {
            let (index, own) = both.at(i);
            index.picture(own)
        })
        .collect();
    let vectors = match both.against {
        Some(against) => [both.index.vectors()?, against.vectors()?].concat(),
        None => both.index.vectors()?.to_vec(),
    };
    let compared = Compared {
        look: &|i| Look::at(&paths[i]),
        vectors: &vectors,
        dim: both.index.parts().dim,
        against_from: both.against.map(|_| both.index.len()),
        folder_rank: &|_| 0,
        not_copies: &|_, _| false,
    };
    let options = DuplicateOptions {
        above: args.above.unwrap_or(DuplicateOptions::default().above),
        nearest: args.nearest,
        ..DuplicateOptions::default()
    };
    let shown: Mutex<Option<(DuplicateStage, Bar)>> = Mutex::new(None);
    let tell = |stage: DuplicateStage, done, total| {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.as_ref().is_none_or(|(before, _)| *before != stage) {
            *shown = None; // its line is cleared before the next begins
            *shown = Some((stage, Bar::new(words(stage), false)));
        }
        if let Some((_, bar)) = &*shown {
            bar.at(done, total);
        }
    };
    Ok(find_duplicates(device, &compared, &options, &tell)?)
}

fn words(stage: DuplicateStage) -> &'static str {
    match stage {
        DuplicateStage::Reading => "reading",
        DuplicateStage::Proposing => "comparing vectors",
        DuplicateStage::Judging => "comparing pixels",
    }
}

fn size(found: &Duplicates, i: usize) -> String {
    let look: Option<&Look> = found.looks[i].as_ref().ok();
    let [height, width] = look.map_or([0, 0], |look| look.height_and_width);
    format!("{width}×{height}")
}

fn why(group: &DuplicateGroup) -> String {
    let reasons: Vec<String> = group.why.iter().map(|r| r.to_string()).collect();
    reasons.join(", ")
}

fn as_text(both: &Both, found: &Duplicates, group: &DuplicateGroup) -> String {
    let keep = group.keep;
    let why = match (both.against, why(group)) {
        (None, why) if !why.is_empty() => format!("  ({why})"),
        _ => String::new(),
    };
    let (name, size_of) = (both.name(keep), |i| size(found, i));
    let mut text = format!("keep  {name}  {}{why}", size_of(keep));
    for other in &group.others {
        let (name, kind, size) = (both.name(other.picture), other.kind, size_of(other.picture));
        text += &format!("\n      {name}  {size}  {kind}  {:.3}", other.score);
    }
    text
}

fn as_json(both: &Both, found: &Duplicates, group: &DuplicateGroup) -> String {
    let sides = |i: usize| {
        let look: Option<&Look> = found.looks[i].as_ref().ok();
        look.map(|look| look.height_and_width)
    };
    let other = |d: &Duplicate| {
        json!({
            "path": both.name(d.picture),
            "kind": d.kind.to_string(),
            "of": both.name(group.keep),
            "score": d.score,
            "height_and_width": sides(d.picture),
        })
    };
    let reasons = group.why.iter().map(|r| r.to_string());
    json!({
        "keep": both.name(group.keep),
        "height_and_width": sides(group.keep),
        "why": reasons.collect::<Vec<_>>(),
        "others": group.others.iter().map(other).collect::<Vec<_>>(),
    })
    .to_string()
}

/// A group after the other, the kept picture framed.
fn draw(path: &Path, both: &Both, found: &Duplicates) -> Result<(), Failure> {
    let mut sheet = Sheet::new(TILE).with_columns(COLUMNS);
    let mut gone = vec![];
    for (number, group) in (1..).zip(&found.groups) {
        if sheet.is_full() {
            break;
        }
        sheet.begin_group(format!(
            "{number}: keep {} ({})",
            both.name(group.keep),
            why(group)
        ));
        let mut show = |i: usize, framed: bool, note: String| {
            let (index, picture) = both.at(i);
            let shown = Shown {
                picture,
                framed,
                note,
                bar: None,
            };
            gone.extend(sheet.push_shown(index, &[shown]));
        };
        show(
            group.keep,
            true,
            format!("keep {}", size(found, group.keep)),
        );
        for other in &group.others {
            let note = format!("{} {:.2}", other.kind, other.score);
            show(other.picture, false, note);
        }
    }
    warn_of_gone(&gone);
    Ok(sheet.save(path)?)
}

fn sum_up(both: &Both, found: &Duplicates) {
    let unread = found.looks.iter().filter(|look| look.is_err()).count();
    if unread > 0 {
        let of =
            |(i, look): (usize, &Result<Look, String>)| Some((i, look.as_ref().err()?.clone()));
        let first = found.looks.iter().enumerate().find_map(of);
        let (i, why) = first.unwrap_or_default();
        eprintln!(
            "warning: {} could not be read, and so not compared; the first is {} ({why})",
            counted(unread, "picture", "pictures"),
            both.name(i)
        );
    }
    let others = found.groups.iter().flat_map(|group| &group.others);
    let mut kinds: Vec<_> = others.map(|d| d.kind).collect();
    kinds.sort_unstable();
    let counts = kinds.chunk_by(|a, b| a == b);
    let counts: Vec<String> = counts
        .map(|of| format!("{} {}", grouped(of.len()), of[0]))
        .collect();
    let told = match counts.is_empty() {
        true => String::new(),
        false => format!(": {}", counts.join(", ")),
    };
    let among = match both.against {
        None => format!("of {} pictures", grouped(both.len())),
        Some(against) => format!(
            "of {} pictures that are among the {} of {}",
            grouped(both.index.len()),
            grouped(against.len()),
            folders_of(against)
        ),
    };
    eprintln!(
        "{} in {}, {among}{told}",
        counted(kinds.len(), "copy", "copies"),
        counted(found.groups.len(), "group", "groups"),
    );
}

fn move_others(both: &Both, found: &Duplicates, folder: &Path) -> Result<(), Failure> {
    let others = found.groups.iter().flat_map(|group| &group.others);
    let pictures: Vec<(PathBuf, String)> = others
        .map(|d| {
            let (index, own) = both.at(d.picture);
            (index.picture(own), index.name(own).into())
        })
        .collect();
    if pictures.is_empty() {
        return Ok(());
    }
    let bar = Bar::new("moving", false);
    let total = pictures.len();
    let moved = set_aside(&Disk::shared(), &pictures, folder, &mut |done| {
        bar.at(done, total)
    });
    drop(bar);
    let moved = moved?;
    eprintln!(
        "{} pictures were moved to {}; `anchorhood duplicates --undo {}` puts them back",
        grouped(moved.len()),
        folder.display(),
        folder.join(UNDO_FILE).display()
    );
    Ok(())
}

fn put_back(record: &Path) -> Result<(), Failure> {
    let done = undo(&Disk, record)?;
    for (path, why) in &done.left {
        eprintln!("warning: {}: not put back: {why}", path.display());
    }
    eprintln!(
        "{} pictures were put back, {} were in their place already",
        grouped(done.moved),
        grouped(done.there)
    );
    match done.left.len() {
        0 => Ok(()),
        left => Err(Failure::failed(format!(
            "{}: {} pictures could not be put back",
            record.display(),
            grouped(left)
        ))),
    }
}

// ---- vectors alone ----

fn loose(args: &DuplicatesArgs, index: &PictureIndex, device: &Device) -> Result<(), Failure> {
    let above = args.above.unwrap_or(LOOSE);
    let bar = Bar::new("comparing", false);
    let tell = |done| bar.at(done, index.len());
    let pairs = similar_pairs(device, index.vectors()?, index.parts().dim, above, &tell);
    drop(bar);
    let pairs = pairs?;
    let together = groups(&pairs);
    if let Some(path) = &args.listing.sheet {
        draw_loose(path, args.groups, index, &pairs, &together)?;
    }
    match args.groups {
        true => print_groups(args, index, &together)?,
        false => print_pairs(args, index, &pairs)?,
    }
    eprintln!(
        "{} in {} among {} have vectors at least {above} similar; without --loose, pixels decide",
        counted(pairs.len(), "pair", "pairs"),
        counted(together.len(), "group", "groups"),
        counted(index.len(), "picture", "pictures"),
    );
    Ok(())
}

fn draw_loose(
    path: &Path,
    whole_groups: bool,
    index: &PictureIndex,
    pairs: &[Pair],
    together: &[Vec<usize>],
) -> Result<(), Failure> {
    let mut sheet = Sheet::new(TILE).with_columns(COLUMNS);
    let mut gone = vec![];
    match whole_groups {
        true => {
            for (number, group) in (1..).zip(together) {
                sheet.begin_group(format!("{number}: {} pictures", group.len()));
                let shown: Vec<_> = group.iter().map(|i| (*i, None)).collect();
                gone.extend(sheet.push_indexed(index, &shown));
            }
        }
        false => {
            let both = |p: &Pair| [p.first, p.second].map(|i| (i, Some(p.similarity)));
            let shown: Vec<_> = pairs.iter().flat_map(both).collect();
            gone.extend(sheet.push_indexed(index, &shown));
        }
    }
    warn_of_gone(&gone);
    Ok(sheet.save(path)?)
}

fn print_pairs(args: &DuplicatesArgs, index: &PictureIndex, pairs: &[Pair]) -> Result<(), Failure> {
    for pair in pairs {
        let [first, second] = [pair.first, pair.second].map(|i| index.name(i));
        output::line(&match args.listing.json {
            true => json!({ "similarity": pair.similarity, "paths": [first, second] }).to_string(),
            false => format!("{:.4}  {first}  {second}", pair.similarity),
        })?;
    }
    Ok(())
}

fn print_groups(
    args: &DuplicatesArgs,
    index: &PictureIndex,
    groups: &[Vec<usize>],
) -> Result<(), Failure> {
    for group in groups {
        let names: Vec<&str> = group.iter().map(|i| index.name(*i)).collect();
        output::line(&match args.listing.json {
            true => json!({ "paths": names }).to_string(),
            false => names.join("  "),
        })?;
    }
    Ok(())
}
