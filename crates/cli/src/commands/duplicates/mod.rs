//! `anchorhood duplicates`: pictures of an index that are the same, which of them to keep, and the
//! others moved aside.

mod moves;

use std::path::{Path, PathBuf};

use anchorhood::{DuplicateGroup, DuplicateOptions, DuplicateSearch, Duplicates, Index, KeepRule};
use anchorhood_index::CopySearch;
use anchorhood_index::curate::{Duplicate, DuplicateStage};
use anchorhood_report::{Sheet, Shown};
use clap::Parser;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};

use self::moves::{move_others, put_back};
use crate::commands::indexed::{IndexedArgs, JobArgs};
use crate::commands::listing::{ListingArgs, warn_of_gone};
use crate::terminal::bar::Bars;
use crate::terminal::failure::Failure;
use crate::terminal::output::{counted, either, grouped};

/// Pictures in a row of the sheet: pairs side by side.
const COLUMNS: usize = 8;
/// Pixels a side of a picture on it.
const TILE: usize = 112;

#[derive(Debug, Parser)]
#[command(
    mut_arg("pictures", |arg| arg.required(false).required_unless_present("undo")),
    after_help = help!("duplicates")
)]
pub struct DuplicatesArgs {
    #[command(flatten)]
    pub pictures: IndexedArgs,
    /// How alike two pictures must be that are one: the correlation of their detail.
    #[arg(long, default_value_t = DuplicateOptions::default().above, value_name = "LEAST")]
    pub above: f32,
    /// Compare with the pictures of another folder, or of an index made with the same model: which
    /// pictures of the first are also in this one? These are kept, those of the first moved.
    #[arg(long, value_name = "FOLDER")]
    pub against: Option<PathBuf>,
    /// Which image of a group is kept; of several rules, each decides where those before it leave
    /// several [default: original].
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = rule())]
    pub keep: Vec<KeepRule>,
    /// Also show bursts: photographs of one scene that are no copies of each other. They are never
    /// moved.
    #[arg(long)]
    pub bursts: bool,
    /// Remember that two images are no duplicates, whatever they look like; can be given several
    /// times.
    #[arg(long, num_args = 2, value_names = ["IMAGE", "IMAGE"], action = clap::ArgAction::Append)]
    pub not: Vec<String>,
    /// The file of such decisions [default: decisions.jsonl in the user's data folder].
    #[arg(long, value_name = "FILE")]
    pub decisions: Option<PathBuf>,
    /// Move all but the kept pictures of each group to a folder, made where there is none, with a
    /// file that says how to put them back. Nothing is deleted or overwritten.
    #[arg(long, value_name = "FOLDER")]
    pub move_to: Option<PathBuf>,
    /// With --move-to, only print what would be moved where.
    #[arg(long, requires = "move_to")]
    pub dry_run: bool,
    /// Put back what was moved; said without pictures.
    #[arg(long, value_name = "undo.jsonl", conflicts_with_all = [
        "pictures", "above", "against", "keep", "bursts", "not", "decisions", "move_to",
    ])]
    pub undo: Option<PathBuf>,
    /// With --undo, follow a record that nothing shows to be yours, once you have looked at what it
    /// would move. Links are not followed.
    #[arg(long, requires = "undo")]
    pub trust_record: bool,
    #[command(flatten)]
    pub listing: ListingArgs,
}

pub fn run(args: &DuplicatesArgs) -> Result<(), Failure> {
    if let Some(record) = &args.undo {
        return put_back(record, args.trust_record);
    }
    if args.trust_record {
        return Err(Failure::usage("--trust-record: goes with --undo FILE"));
    }
    if !(-1.0..=1.0).contains(&args.above) {
        return Err(Failure::usage(format!(
            "--above {}: a correlation is between -1 and 1; the same pictures are near 1",
            args.above
        )));
    }
    args.listing.check()?;
    let index = args.pictures.open_on_device(&JobArgs::default())?;
    let against = args.against.as_ref();
    let against = against.map(|other| args.pictures.open_beside(&index, other)).transpose()?;
    let mut search = DuplicateSearch::new(&index, against.as_ref())?;
    if let Some(file) = &args.decisions {
        search = search.decisions(file);
    }
    if let Some(folder) = &args.move_to {
        search.check_folder(folder)?; // one that cannot be is refused before all is read
    }
    for pair in args.not.chunks_exact(2) {
        let (path, new) = search.not_duplicates(&pair[0], &pair[1])?;
        let already = if new { "" } else { " already" };
        eprintln!(
            "{} and {} are no duplicates: remembered{already} in {}",
            pair[0],
            pair[1],
            path.display()
        );
    }
    let usual = DuplicateOptions::default();
    let options = DuplicateOptions {
        above: args.above,
        keep: if args.keep.is_empty() { usual.keep } else { args.keep.clone() },
        ..usual
    };
    let bars = Bars::new(false);
    let found = search.find(&options, &|stage, done, total| bars.at(words(stage), done, total, ""));
    drop(bars);
    let (found, search) = (found?, search.images());
    if let Some(path) = &args.listing.sheet {
        draw(path, search, &found)?;
    }
    for group in &found.groups {
        let object = || as_json(search, &found, group);
        either(args.listing.json, object, || as_text(search, &found, group))?;
    }
    for burst in found.bursts.iter().filter(|_| args.bursts) {
        let names: Vec<String> = burst.iter().map(|i| search.name(*i)).collect();
        let text = || format!("burst {}", names.join("\n      "));
        either(args.listing.json, || json!({ "burst": names }), text)?;
    }
    sum_up(&index, against.as_ref(), search, &found);
    match &args.move_to {
        Some(folder) => move_others(args, &found, folder),
        None => Ok(()),
    }
}

fn rule() -> impl TypedValueParser<Value = KeepRule> {
    let names = KeepRule::ALL.map(|rule| rule.to_string());
    PossibleValuesParser::new(names).try_map(|name| name.parse::<KeepRule>())
}

fn words(stage: DuplicateStage) -> &'static str {
    match stage {
        DuplicateStage::Reading => "reading",
        DuplicateStage::Proposing => "comparing vectors",
        DuplicateStage::Judging => "comparing pixels",
    }
}

fn sides(found: &Duplicates, i: usize) -> Option<[u32; 2]> {
    found.looks[i].as_ref().ok().map(|look| look.height_and_width)
}

fn size(found: &Duplicates, i: usize) -> String {
    let [height, width] = sides(found, i).unwrap_or_default();
    format!("{width}×{height}")
}

fn why(group: &DuplicateGroup) -> String {
    let reasons: Vec<String> = group.why.iter().map(|r| r.to_string()).collect();
    reasons.join(", ")
}

fn as_text(both: &CopySearch, found: &Duplicates, group: &DuplicateGroup) -> String {
    let keep = group.keep;
    let why = match why(group) {
        why if why.is_empty() => why,
        why => format!("  ({why})"),
    };
    let (name, size_of) = (both.name(keep), |i| size(found, i));
    let mut text = format!("keep  {name}  {}{why}", size_of(keep));
    for other in &group.others {
        let (name, kind, size) = (both.name(other.picture), other.kind, size_of(other.picture));
        text += &format!("\n      {name}  {size}  {kind}  {:.3}", other.score);
    }
    text
}

fn as_json(both: &CopySearch, found: &Duplicates, group: &DuplicateGroup) -> Value {
    let other = |d: &Duplicate| {
        json!({
            "path": both.name(d.picture),
            "kind": d.kind.to_string(),
            "of": both.name(group.keep),
            "score": d.score,
            "height_and_width": sides(found, d.picture),
        })
    };
    let reasons = group.why.iter().map(|r| r.to_string());
    json!({
        "keep": both.name(group.keep),
        "height_and_width": sides(found, group.keep),
        "why": reasons.collect::<Vec<_>>(),
        "others": group.others.iter().map(other).collect::<Vec<_>>(),
    })
}

/// A group after the other, the kept picture framed.
fn draw(path: &Path, both: &CopySearch, found: &Duplicates) -> Result<(), Failure> {
    let mut sheet = Sheet::new(TILE).with_columns(COLUMNS);
    let mut gone = vec![];
    for (number, group) in (1..).zip(&found.groups) {
        if sheet.is_full() {
            break;
        }
        sheet.begin_group(format!("{number}: keep {} ({})", both.name(group.keep), why(group)));
        let mut show = |i: usize, framed: bool, note: String| {
            let (index, picture) = both.at(i);
            let shown = Shown { picture, framed, note, bar: None };
            gone.extend(sheet.push_shown(index, &[shown]));
        };
        show(group.keep, true, format!("keep {}", size(found, group.keep)));
        for other in &group.others {
            let note = format!("{} {:.2}", other.kind, other.score);
            show(other.picture, false, note);
        }
    }
    warn_of_gone(&gone);
    Ok(sheet.save(path)?)
}

fn sum_up(index: &Index, against: Option<&Index>, both: &CopySearch, found: &Duplicates) {
    let names = both.other_names();
    if names > 0 {
        eprintln!(
            "note: {} of a file that is compared under another (a link, a folder named twice)",
            counted(names, "further name", "further names")
        );
    }
    let looks = found.looks.iter().enumerate();
    let unread: Vec<_> = looks.filter_map(|(i, look)| Some((i, look.as_ref().err()?))).collect();
    if let Some((first, why)) = unread.first() {
        eprintln!(
            "warning: {} could not be read, and so not compared; the first is {} ({why})",
            counted(unread.len(), "picture", "pictures"),
            both.name(*first)
        );
    }
    let others = found.groups.iter().flat_map(|group| &group.others);
    let mut kinds: Vec<_> = others.map(|d| d.kind).collect();
    kinds.sort_unstable();
    let counts = kinds.chunk_by(|a, b| a == b);
    let counts: Vec<String> = counts.map(|of| format!("{} {}", grouped(of.len()), of[0])).collect();
    let told = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
    let among = match against {
        None => format!("of {} pictures", grouped(both.len())),
        Some(against) => format!(
            "of {} pictures that are among the {} of {}",
            grouped(index.len()),
            grouped(against.len()),
            against.folders()
        ),
    };
    eprintln!(
        "{} in {}, {among}{told}",
        counted(kinds.len(), "copy", "copies"),
        counted(found.groups.len(), "group", "groups"),
    );
    if !found.bursts.is_empty() {
        eprintln!(
            "{} of {} in all, which are no copies (--bursts shows them)",
            counted(found.bursts.len(), "burst", "bursts"),
            counted(found.bursts.iter().map(Vec::len).sum(), "photograph", "photographs"),
        );
    }
}
