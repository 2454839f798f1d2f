//! `anchorhood classify`: a few labels carried to a whole folder, and which pictures to label next.

use std::path::PathBuf;

use anchorhood::{Classifier, ExportOptions, GivenLabels, Guess, Index, LabelledIndex, WrongLabel};
use anchorhood_report::Shown;
use anchorhood_storage::AtomicFile;
use clap::{Parser, ValueEnum};
use serde_json::json;

use crate::args::model::io;
use crate::commands::indexed::{IndexedArgs, JobArgs};
use crate::commands::listing::{Listed, csv_of, draw, print};
use crate::terminal::failure::Failure;
use crate::terminal::output::{self, grouped};

/// Likely wrong labels on a sheet.
const SHOWN: usize = 100;

#[derive(Debug, Parser)]
#[command(after_help = help!("classify"))]
pub struct ClassifyArgs {
    #[command(flatten)]
    pub pictures: IndexedArgs,
    /// The labelled pictures: a CSV file of paths and labels. With --check, the sub-folders where
    /// it is left out.
    #[arg(long, value_name = "FILE.csv", required_unless_present = "check")]
    pub labels: Option<PathBuf>,
    /// How classes are told.
    #[arg(long, value_enum, default_value_t = By::Auto)]
    pub by: By,
    /// Name the labels that are likely wrong, the likeliest first: a line is the share of the votes
    /// for another label, that for the given one, the path, and both labels.
    #[arg(long, conflicts_with_all = ["output", "next_to", "next_sheet"])]
    pub check: bool,
    /// With --check, a JSON object a line.
    #[arg(long, requires = "check")]
    pub json: bool,
    /// With --check, also draw them as a contact sheet.
    #[arg(long, requires = "check", value_name = "FILE.png")]
    pub check_sheet: Option<PathBuf>,
    /// Where the result goes [default: stdout].
    #[arg(long, short, value_name = "FILE.csv")]
    pub output: Option<PathBuf>,
    /// Labelled pictures that vote on each picture.
    #[arg(short, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub k: u32,
    /// How many pictures to name that would help most if they were labelled.
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub next: usize,
    /// Write these as a CSV file whose labels are to be filled in.
    #[arg(long, value_name = "FILE.csv")]
    pub next_to: Option<PathBuf>,
    /// Draw them as a contact sheet.
    #[arg(long, value_name = "FILE.png")]
    pub next_sheet: Option<PathBuf>,
    /// Replace files that are there.
    #[arg(long)]
    pub overwrite: bool,
    #[command(flatten)]
    pub job: JobArgs,
}

/// How classes are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// logistic up to 10,000 labels, knn beyond.
    Auto,
    /// The nearest labelled pictures vote.
    Knn,
    /// A logistic regression on all labelled pictures.
    Logistic,
}

impl From<By> for Classifier {
    fn from(by: By) -> Self {
        match by {
            By::Auto => Classifier::Auto,
            By::Knn => Classifier::Knn,
            By::Logistic => Classifier::Logistic,
        }
    }
}

pub fn run(args: &ClassifyArgs) -> Result<(), Failure> {
    let files = [&args.output, &args.next_to, &args.next_sheet, &args.check_sheet];
    ExportOptions::check_files(files.into_iter().flatten(), args.overwrite)?;
    let labels = args.labels.as_deref().map(GivenLabels::read).transpose()?;
    let index = open(args)?;
    let labelled = &index.labelled(labels.as_ref())?;
    if args.check {
        return check(args, labelled);
    }
    let guesses = labelled.classify(args.by.into(), args.k as usize)?;
    write_result(args, labelled, &guesses)?;
    sum_up(args, labelled, &guesses);
    tell_next(args, labelled, &guesses)
}

/// The index that was named, or that of the folders.
fn open(args: &ClassifyArgs) -> Result<Index, Failure> {
    let index = args.pictures.open_on_device(&args.job)?;
    let layer = index.parts().parts().layer.as_deref();
    if args.job.layer.is_some() && args.job.layer.as_deref() != layer {
        return Err(usage!(
            "--layer: {} holds vectors of {}; leave --layer out, or make another index",
            index.file().display(),
            layer.unwrap_or("the last layer")
        ));
    }
    Ok(index)
}

fn check(args: &ClassifyArgs, labelled: &LabelledIndex) -> Result<(), Failure> {
    let found = labelled.wrong_labels(args.k as usize)?;
    tell_wrong(args, labelled, &found)?;
    if !args.job.quiet {
        let confident = found.iter().filter(|w| w.confident).count();
        eprintln!(
            "{} of {} labels are contradicted by the pictures most like theirs, {} of them \
             confidently",
            grouped(found.len()),
            grouped(labelled.labels()),
            grouped(confident)
        );
    }
    Ok(())
}

fn tell_wrong(
    args: &ClassifyArgs,
    labelled: &LabelledIndex,
    found: &[WrongLabel],
) -> Result<(), Failure> {
    let index = labelled.index();
    let listed = |wrong: &WrongLabel| {
        let [given, likely] = [wrong.given, wrong.likely].map(|number| labelled.class(number));
        let (path, other, own) = (index.name(wrong.picture), wrong.likely_share, wrong.given_share);
        let note = format!("{given} → {likely}");
        Listed {
            line: format!("{other:.2} {own:.2}  {path}  {note}"),
            object: json!({
                "path": path, "given": given, "likely": likely,
                "likely_share": other, "given_share": own, "confident": wrong.confident,
            }),
            shown: Shown { note, ..Shown::with_bar(wrong.picture, other) },
        }
    };
    let listed: Vec<Listed> = found.iter().map(listed).collect();
    print(&listed, args.json)?;
    match &args.check_sheet {
        Some(path) => draw(path, 128, index, listed.into_iter().take(SHOWN).map(|one| one.shown)),
        None => Ok(()),
    }
}

fn write_result(
    args: &ClassifyArgs,
    labelled: &LabelledIndex,
    guesses: &[Guess],
) -> Result<(), Failure> {
    let (nearest, of_second) = ("nearest_similarity", "second_confidence");
    let header = ["path", "label", "confidence", "second", of_second, nearest, "given"];
    let row = |(i, guess): (usize, &Guess)| {
        let class = |number| labelled.class(number);
        let given = labelled.given()[i].map(class);
        // What a person said stands, whatever the neighbours think.
        let label = given.unwrap_or(class(guess.class)).to_string();
        let share = |share: f32| format!("{share:.4}");
        let confidence = share(if given.is_some() { 1.0 } else { guess.confidence });
        let second = guess.second.map(|(c, of_it)| (class(c).to_string(), share(of_it)));
        let (second, of_second) = second.unwrap_or_default();
        let (name, given) = (labelled.index().name(i).into(), given.unwrap_or_default().into());
        [name, label, confidence, second, of_second, share(guess.nearest), given]
    };
    let bytes = csv_of(header, guesses.iter().enumerate().map(row))?;
    match &args.output {
        Some(path) => AtomicFile::write(path, &bytes).map_err(io(path)),
        None => {
            let text = String::from_utf8_lossy(&bytes);
            output::line(text.trim_end())
        }
    }
}

fn sum_up(args: &ClassifyArgs, labelled: &LabelledIndex, guesses: &[Guess]) {
    let (given, known) = (labelled.given(), labelled.labels());
    let mut lines = vec![format!(
        "{} pictures classified by {} labelled ones of {} classes; of these {:.0}% would be \
         guessed right by the others",
        grouped(guesses.len() - known),
        grouped(known),
        labelled.classes().len(),
        labelled.leave_one_out(guesses) * 100.0
    )];
    for (number, name) in labelled.classes().iter().enumerate() {
        let of = |(_, g): &(_, &Guess)| g.class as usize == number;
        let open = given.iter().zip(guesses);
        let open = open.filter(|(given, _)| given.is_none());
        let count = open.filter(of).count();
        lines.push(format!("{:>8}  {name}", grouped(count)));
    }
    if !args.job.quiet {
        eprintln!("{}", lines.join("\n"));
    }
}

fn tell_next(
    args: &ClassifyArgs,
    labelled: &LabelledIndex,
    guesses: &[Guess],
) -> Result<(), Failure> {
    let (index, next) = (labelled.index(), labelled.label_next(guesses, args.next)?);
    if next.is_empty() {
        return Ok(());
    }
    let confidence = |i: usize| guesses[i].confidence;
    let class = |i: usize| labelled.class(guesses[i].class);
    if let Some(path) = &args.next_to {
        let header = ["path", "label", "guess", "confidence"];
        let row = |i: &usize| {
            let share = format!("{:.4}", confidence(*i));
            [index.name(*i).into(), String::new(), class(*i).into(), share]
        };
        let csv = csv_of(header, next.iter().map(row))?;
        AtomicFile::write(path, &csv).map_err(io(path))?;
    }
    if let Some(path) = &args.next_sheet {
        draw(path, 128, index, next.iter().map(|i| Shown::with_bar(*i, confidence(*i))))?;
    }
    if !args.job.quiet {
        eprintln!("most would be learnt from labels of");
        for i in next.iter().take(20) {
            let (name, share) = (index.name(*i), confidence(*i) * 100.0);
            eprintln!("  {name}  ({}? {share:.0}%)", class(*i));
        }
    }
    Ok(())
}
