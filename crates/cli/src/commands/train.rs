//! `anchorhood train`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anchorhood::research::{RunDir, RunEnded};
use anchorhood::{Explained, Model, Run, Summary, Trainer, find_run, latest_run};
use anchorhood_train::{embedding_path, refitted_path};
use serde_json::json;

use crate::args::TrainArgs;
use crate::args::ranks::Ranks;
use crate::terminal;
use crate::terminal::draw::{Drawer, Style};
use crate::terminal::failure::Failure;
use crate::terminal::interrupt::stop_when_interrupted;
use crate::terminal::output;

/// Runs the command, as one process or as one of several.
pub fn run(args: &TrainArgs) -> Result<(), Failure> {
    let ranks = Ranks::join()?;
    let outcome = train(args, &ranks);
    ranks.ended(outcome)
}

fn train(args: &TrainArgs, ranks: &Ranks) -> Result<(), Failure> {
    let began = Instant::now();
    if args.explain {
        return explain(args);
    }
    let first = ranks.communicator.is_first();
    let style = match (first, args.json, args.quiet) {
        (false, _, _) => Style::Silent,
        (true, true, _) => Style::Json,
        (true, _, true) => Style::Quiet,
        (true, false, false) => Style::Human,
    };
    let stop = stop_when_interrupted(first.then_some(SAVING))?;
    let mut drawer = Drawer::new(style, stop.clone());
    let trained = trainer(args)?
        .began(began)
        .process_group(ranks.communicator.clone(), ranks.launch.clone())
        .on_event(|event| drawer.event(event))
        .stop_when(&stop)
        .train();
    drawer.finish();
    let run = trained?;
    match run.stopped_at() {
        None if first => finished(args, &run),
        None => Ok(()), // the first process says it
        Some(_) if !first => Err(Failure::interrupted()),
        Some(position) => {
            eprintln!(
                "stopped at {position}, saved in {}; go on with\n  anchorhood train --resume {}",
                run.path().display(),
                run_and_place(&args.runs, run.path())
            );
            Err(if drawer.closed() { Failure::closed_pipe() } else { Failure::interrupted() })
        }
    }
}

/// What was typed, as the library takes it.
fn trainer<'a>(args: &TrainArgs) -> Result<Trainer<'a>, Failure> {
    let mut trainer = Trainer::with_options(args.start.options())
        .runs(&args.runs, args.name.clone())
        .tensorboard(args.tensorboard);
    if let Some(minutes) = args.minutes {
        trainer = trainer.minutes(minutes);
    }
    match (resumed_run(args)?, &args.moved) {
        (None, Some(data)) => {
            return Err(usage!(
                "--data says where the pictures of a run lie that goes on (--resume); a new run \
                 takes them without it: `anchorhood train {data}`"
            ));
        }
        (None, None) => {}
        (Some(run), moved) => {
            trainer = trainer.resumed(run);
            if let Some(moved) = moved {
                trainer = trainer.data_path(moved);
            }
        }
    }
    Ok(trainer)
}

/// The run that is to go on, if one is.
pub fn resumed_run(args: &TrainArgs) -> Result<Option<PathBuf>, Failure> {
    let Some(resume) = &args.resume else {
        return Ok(None);
    };
    let name = match (resume.as_str(), &args.name) {
        ("", Some(name)) => Some(name.as_str()),
        ("", None) => None,
        (run, None) => Some(run),
        (run, Some(name)) if run == name => Some(run),
        (run, Some(name)) => {
            return Err(usage!(
                "--resume {run} goes on with that run, and --name {name} names another; give one \
                 of them"
            ));
        }
    };
    Ok(Some(match name {
        Some(name) => find_run(&args.runs, name)?,
        None => latest_run(&args.runs)?,
    }))
}

/// Prints every setting and where its value comes from.
fn explain(args: &TrainArgs) -> Result<(), Failure> {
    let explained = trainer(args)?.on_event(terminal::tell).explain()?;
    if args.json {
        let object =
            |e: &Explained| json!({ "setting": e.setting, "value": e.value, "from": e.from });
        let all: Vec<_> = explained.iter().map(object).collect();
        return output::line(&json!(all).to_string());
    }
    let width = |text: fn(&Explained) -> &str| explained.iter().map(|e| text(e).len()).max();
    let setting = width(|e| e.setting).unwrap_or_default();
    let value = width(|e| &e.value).unwrap_or_default().min(40);
    for Explained { setting: name, value: text, from } in &explained {
        output::line(&format!("{name:<setting$}  {text:<value$}  {from}"))?;
    }
    Ok(())
}

/// What is said when the first Ctrl-C asks training to save and end; the second ends the program.
pub const SAVING: &str = "saving after this step … (once more to end at once)";

fn finished(args: &TrainArgs, run: &Run) -> Result<(), Failure> {
    let summary = &run.summary()?;
    let Some(ended) = &run.ended()? else {
        return Ok(());
    };
    let verdict = summary.verdict().map(|verdict| verdict.to_string());
    let mut said: Vec<String> = verdict.into_iter().chain(summary.choice()).collect();
    said.push(headline(ended, summary));
    said.push(whereabouts(args, run.path(), ended.last.is_some()));
    said.extend(beside_base(run.path(), ended.last.is_some()));
    let mut parts = vec![summary.table()];
    parts.extend(summary.before_and_after());
    parts.push(said.join("\n"));
    let text = parts.join("\n\n");
    if args.json {
        eprintln!("{text}");
        return Ok(());
    }
    output::line(&text)
}

fn headline(ended: &RunEnded, summary: &Summary) -> String {
    let took = output::duration(ended.seconds);
    let as_used = summary.as_used.as_ref().map(|(size, of)| {
        let top1 = of.top1 * 100.0;
        format!(", {top1:.1}% as its model is used, given pictures of {size}×{size}")
    });
    match (ended.last, ended.best) {
        (Some(last), Some(best)) => format!(
            "kNN after the last epoch {:.1}%{}; best of any epoch {:.1}% (chosen by {} accuracy). \
             {took}.",
            last.top1 * 100.0,
            as_used.unwrap_or_default(),
            best.top1 * 100.0,
            summary.judged_on()
        ),
        _ => format!(
            "No kNN is reported, because these pictures have no labels to judge by; loss {:.4} \
             after the last epoch. {took}.",
            ended.loss
        ),
    }
}

fn whereabouts(args: &TrainArgs, run: &Path, judged: bool) -> String {
    let next = match judged {
        true => "Judge it again with\n  anchorhood evaluate",
        false => "See what it found with\n  anchorhood serve",
    };
    format!(
        "The model is {}, the report {}.\n{next} {}",
        embedding_path(run).display(),
        run.join("report.html").display(),
        run_and_place(&args.runs, run)
    )
}

/// How to see whether photographs are told apart better than by the model that was there already.
fn beside_base(run: &Path, judged: bool) -> Option<String> {
    let config = RunDir::config_of(run).ok()?;
    if !judged || !Path::new(&config.data.set).is_dir() {
        return None;
    }
    let pictures = quoted(&config.data.set);
    let base = format!("anchorhood evaluate base --data {pictures}");
    match (config.training.from.as_deref(), config.data.embed_size) {
        (None, _) => {
            Some(format!("and the model inside this program, on the same pictures, with\n  {base}"))
        }
        (Some(Model::BASE), Some(size)) if refitted_path(run).is_file() => Some(format!(
            "and before and after with pictures of {size}×{size}, as both are used, with\n  \
             {base}\n  anchorhood evaluate {} --data {pictures}",
            quoted(&refitted_path(run).display().to_string())
        )),
        (Some(_), _) => None,
    }
}

/// A run by name where that is enough, by folder otherwise, and where the name would be taken for a
/// flag.
fn run_and_place(runs: &Path, run: &Path) -> String {
    let name = run.file_name().map(|n| n.to_string_lossy().into_owned());
    match name {
        Some(name)
            if runs == Path::new("runs") && run == runs.join(&name) && !name.starts_with('-') =>
        {
            quoted(&name)
        }
        _ => quoted(&run.display().to_string()),
    }
}

/// As a shell takes it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./".contains(c);
    if text.chars().all(plain) { text.into() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_be_typed_can_be_typed() {
        let said = |name: &str| run_and_place(Path::new("runs"), &Path::new("runs").join(name));
        assert_eq!(said("mine"), "mine");
        assert_eq!(said("it's mine"), r"'it'\''s mine'");
        assert_eq!(said("-x"), "runs/-x");
    }
}
