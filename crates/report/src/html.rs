//! One page with everything in it: no request leaves it, and it can be sent by mail.

use std::path::{Path, PathBuf};

use anchorhood_data::Split;
use anchorhood_storage::{AtomicFile, Disk, FileSystem};
use anchorhood_train::Event;
use anchorhood_train::evaluation::{Rows, layout};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, PreEscaped, html};
use serde_json::json;

use crate::charts::{charts, entropy_svg, write_charts};
use crate::lead::lead;
use crate::sprite::Sprite;
use crate::summary::floor_name;
use crate::table::{self, percent};
use crate::{ReportError, RoundNeighbourhoods, RunRecord, Summary, duration, gallery, grouped};

/// Pictures on the map, at most: enough to see the shape, few enough to send by mail.
const MOST_ON_MAP: usize = 2000;
/// Pixels a side of a picture on the map.
const MAP_TILE: usize = 32;

/// The style that every page of the program shares.
pub const STYLE: &str = include_str!("page/style.css");
/// The map that every page of the program shares: `showMap(box, map)`.
pub const MAP_SCRIPT: &str = include_str!("page/map.js");
const REPORT_SCRIPT: &str = include_str!("page/report.js");

/// The training pictures, or why they are not at hand.
pub type TrainingPictures<'a> = Result<&'a Split, String>;

/// Writes `report.html` into a run's folder, and its charts into `charts/`. Gives the page's path.
/// Where the pictures are not at hand, a page that is there is kept, unless it may be overwritten.
pub fn write_report(
    folder: &Path,
    record: &RunRecord,
    pictures: TrainingPictures,
    overwrite: bool,
) -> Result<PathBuf, ReportError> {
    let path = folder.join("report.html");
    let pictures = pictures.and_then(|split| fitting(record, split));
    if !overwrite
        && let Err(why) = &pictures
        && path.exists()
    {
        let why = why.clone();
        return Err(ReportError::PageKept { path, why });
    }
    let page = report_html(record, pictures)?;
    let beside = folder.join("charts");
    Disk.create_folders(&beside).map_err(ReportError::io(&beside))?;
    write_charts(&beside, &Summary::of(&record.events), &record.rounds)?;
    AtomicFile::write(&path, page.as_bytes()).map_err(ReportError::io(&path))?;
    Ok(path)
}

/// The page of a run. Without its pictures it says why, and shows everything else.
pub fn report_html(record: &RunRecord, pictures: TrainingPictures) -> Result<String, ReportError> {
    let summary = Summary::of(&record.events);
    let pictures = pictures.and_then(|split| fitting(record, split));
    let train = pictures.as_ref().ok().copied();
    let memory = record.embedding.as_ref().filter(|e| !e.is_empty());
    let lead = memory.zip(train).map(|(memory, train)| lead(memory, train)).transpose()?;
    let charts = chart_markup(&summary)?;
    let neighbourhoods = neighbourhoods(&record.rounds, train)?;
    let map = memory.map(|memory| map(memory, train)).transpose()?;
    let program = format!("anchorhood {}", anchorhood_train::VERSION);
    let page = html! {
        (PreEscaped("<!doctype html>"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(program);
                title { (record.name) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                (top(&record.name, &summary))
                main {
                    @if let Some(left_out) = &record.left_out {
                        p.note { (left_out) "." }
                    }
                    @if let Err(why) = &pictures {
                        h2 { "Pictures" }
                        p.note { "The training pictures are not shown, because " (why) "." }
                    }
                    @if let Some(rows) = summary.before_and_after_rows() {
                        h2 { "Before and after" }
                        (table::html(&rows))
                    }
                    @if let Some(lead) = lead { (lead) }
                    h2 { "Figures" }
                    (figures(&summary))
                    h2 { "Curves" }
                    (charts)
                    h2 { "Rounds" }
                    (table::html(&summary.rows(true)))
                    (neighbourhoods)
                    @if let Some(map) = map { (map) }
                    h2 { "Where the network looked" }
                    (strips(record))
                    h2 { "Evidence" }
                    (evidence(record, &summary))
                    h2 { "Settings" }
                    (settings(record))
                }
                footer { "Made by " (program) ". Everything on this page is in this file." }
                script { (PreEscaped(MAP_SCRIPT)) (PreEscaped(REPORT_SCRIPT)) }
            }
        }
    };
    Ok(page.into_string())
}

/// Pictures are only shown where they are those the run has seen.
fn fitting<'a>(record: &RunRecord, split: &'a Split) -> Result<&'a Split, String> {
    let seen = record.embedding.as_ref().map(|e| e.len());
    let found = record.rounds.first().map(|r| r.found.len());
    let n = split.pictures.len();
    match [seen, found].into_iter().flatten().find(|m| *m != n) {
        Some(m) => Err(format!("the run has seen {m} pictures, and the data set has {n} now")),
        None if n == 0 => Err("the data set has none".into()),
        None => Ok(split),
    }
}

/// What was trained, and whether it was worth it, before all figures.
fn top(name: &str, summary: &Summary) -> Markup {
    html! {
        header.top {
            h1 { (name) }
            @if let Some(s) = &summary.started {
                p.soft {
                    (s.network) " on " (grouped(s.pictures)) " pictures of " (s.data)
                    " (" (s.size) "×" (s.size) "), "
                    (s.rounds + 1) " rounds of " (s.epochs) " epochs"
                }
            }
            @if summary.ended.is_none() {
                p.note { "This run has not ended: figures are as far as it came." }
            }
            @if let Some(verdict) = summary.verdict() {
                p.verdict.better[verdict.better()].not[!verdict.better()] { (verdict) }
            }
            @if let Some(choice) = summary.choice() {
                p.soft { (choice) }
            }
        }
    }
}

/// Figures in a row, at most; of more, rows are about as long.
const IN_A_ROW: usize = 5;

fn figures(summary: &Summary) -> Markup {
    let all = all_figures(summary);
    let rows = all.len().div_ceil(IN_A_ROW).max(1);
    html! {
        div.figures style={ "--columns:" (all.len().div_ceil(rows)) } {
            @for (value, what) in all {
                div.figure { b { (value) } span { (what) } }
            }
        }
    }
}

/// Each with what it is.
fn all_figures(summary: &Summary) -> Vec<(String, String)> {
    let mut all = vec![];
    let mut figure = |value: String, what: String| all.push((value, what));
    let last = summary.evaluations.last().map(|e| e.accuracy);
    if let Some(last) = last {
        let what = format!("kNN top-1 after the last epoch, n = {}", grouped(last.n));
        figure(percent(last.top1), what);
    }
    for floor in &summary.floors {
        let name = floor_name(floor.subject).unwrap_or_default();
        figure(percent(floor.accuracy.top1), format!("kNN of {name}"));
    }
    if let Some(model) = summary.model() {
        figure(
            percent(model.figures.found),
            "changed copies that find their original, without labels".into(),
        );
        figure(
            format!("{:.1}", model.figures.effective_rank),
            "effective rank of the features".into(),
        );
    }
    if let Some(epoch) = summary.epochs.last() {
        figure(format!("{:.3}", epoch.loss), "loss of the last epoch".into());
    }
    let consistent = summary.rounds.last().and_then(|r| r.consistency?.share());
    if let Some(share) = consistent {
        figure(percent(share), "anchors with neighbours of their class, last round".into());
    }
    if let Some(ended) = &summary.ended {
        figure(duration(ended.seconds), "in all".into());
    }
    all
}

/// The charts of a run as figures of a page; they need the page's [`STYLE`].
pub fn chart_figures(summary: &Summary) -> Result<String, ReportError> {
    chart_markup(summary).map(Markup::into_string)
}

fn chart_markup(summary: &Summary) -> Result<Markup, ReportError> {
    let judged = summary.rounds.iter().any(|r| r.consistency.is_some());
    let charts = charts(summary)?;
    Ok(html! {
        div.charts {
            @for (file, title, svg) in charts {
                figure.card.chart {
                    figcaption { (title) }
                    @if file == "anchors" {
                        div.small.soft {
                            @if judged { (key("blue")) }
                            "pictures that are anchors"
                            @if judged {
                                (key("green")) "anchors whose neighbours are of their class"
                            }
                        }
                    }
                    (PreEscaped(svg))
                }
            }
        }
    })
}

/// What a colour stands for begins with it.
fn key(colour: &str) -> Markup {
    html! { i.key style={ "background:var(--" (colour) ")" } {} }
}

fn neighbourhoods(
    rounds: &[RoundNeighbourhoods],
    train: Option<&Split>,
) -> Result<Markup, ReportError> {
    if rounds.is_empty() {
        return Ok(html! {});
    }
    let shown =
        train.map(|t| Ok::<_, ReportError>((gallery::sprite(rounds, t)?, t))).transpose()?;
    let entropies = rounds.iter().map(|r| entropy_svg(&r.found));
    let entropies = entropies.collect::<Result<Vec<String>, _>>()?;
    Ok(html! {
        h2 { "Neighbourhoods" }
        p {
            "Before each round every picture is compared with all others. Where few stand out as \
             near, entropy is low and the picture is sure of its neighbourhood: these become \
             anchors first."
        }
        @if let Some((sprite, train)) = &shown {
            (sprite.style(".tile", ""))
            p.small.soft {
                "At the left of each group a picture, then its nearest neighbours."
                @if train.labels.is_some() {
                    " A green frame: of the picture's class; red: of another \
                     (labels judge here, they never train)."
                }
            }
        }
        div.tabs data-for="rounds" role="tablist" {
            @for r in rounds {
                button role="tab" { "Round " (r.round) }
            }
        }
        @for (RoundNeighbourhoods { round, found }, svg) in rounds.iter().zip(entropies) {
            section data-panel="rounds" {
                figure.card.chart style="max-width:640px" {
                    figcaption { "Entropy before round " (round) }
                    div.small.soft {
                        (key("blue")) (grouped(found.anchor_count())) " of " (grouped(found.len()))
                        " pictures chosen as anchors" (key("grey")) "the rest"
                    }
                    (PreEscaped(svg))
                }
                @if let Some((sprite, train)) = &shown { (gallery::gallery(found, train, sprite)) }
            }
        }
    })
}

fn map(embedding: &Rows, train: Option<&Split>) -> Result<Markup, ReportError> {
    let sheet = layout(&embedding.values, embedding.dim, MOST_ON_MAP);
    let sprite = train.map(|t| Sprite::of(&t.pictures, &sheet.chosen, MAP_TILE)).transpose()?;
    let labels = train.and_then(|t| t.labels.as_ref());
    let class = |i: &u32| labels.map_or(-1, |l| i64::from(l.get(*i as usize)));
    let place = |p: &[f32; 2]| p.map(|v| (v * 1000.0).round() as i32);
    let files = train.filter(|t| !t.names.is_empty());
    let files =
        files.map(|t| sheet.chosen.iter().map(|i| &t.names[*i as usize]).collect::<Vec<_>>());
    let data = json!({
        "places": sheet.places.iter().map(place).collect::<Vec<_>>(),
        "chosen": sheet.chosen,
        "classes": sheet.chosen.iter().map(class).collect::<Vec<_>>(),
        "names": labels.map_or(&[][..], |l| l.classes()),
        "labels": files,
        "columns": sprite.as_ref().map(|s| s.columns),
        "rows": sprite.as_ref().map(|s| s.rows),
        "side": sprite.as_ref().map(|s| s.side),
        "sprite": sprite.as_ref().map(|s| s.data_uri()),
    });
    // `<` inside a script could end it.
    let data = data.to_string().replace('<', "\\u003c");
    let (shown, all) = (grouped(sheet.chosen.len()), grouped(embedding.len()));
    let how = match shown == all {
        true => format!("All {all} pictures"),
        false => format!("{shown} of {all} pictures, evenly taken,"),
    };
    Ok(html! {
        h2 { "Map" }
        p {
            (how) " laid out so that alike ones are near (t-SNE of the memory)."
            @if labels.is_some() { " Colours are classes, which training never saw." }
            " Point at one to see it; drag to move, wheel or two fingers to magnify."
        }
        div.card.map {
            div.tabs {
                @if sprite.is_some() { button data-pictures { "Show pictures" } }
                button data-home { "Whole map" }
            }
            canvas role="img" aria-label="map of the embeddings" {}
            div.tip {}
            div.legend {}
        }
        script type="application/json" id="map-data" { (PreEscaped(data)) }
    })
}

fn strips(record: &RunRecord) -> Markup {
    let name = &record.name;
    html! {
        @if record.strips.is_empty() {
            p.soft {
                "No strips have been drawn. "
                code {
                    "anchorhood attention " (name) " --pictures 1,5,9 -o runs/" (name) "/attention"
                }
                " draws some; make the report again to see them here."
            }
        } @else {
            p {
                "Each strip: a picture, then the same under the heat of what placed it near its \
                 neighbours, round by round. Frames: grey, it stood alone; green, its neighbours \
                 are of its class; red, some are not."
            }
        }
        @for strip in &record.strips {
            img.strip alt={ "attention: " (strip.name) } title=(strip.name)
                src={ "data:image/png;base64," (STANDARD.encode(&strip.png)) };
        }
    }
}

fn settings(record: &RunRecord) -> Markup {
    // The folder a run was started in is nobody's business whom the page is sent to.
    let told = |line: &&str| !line.starts_with("seen_from");
    let told: Vec<&str> = record.settings.lines().filter(told).collect();
    html! {
        details { summary { "config.toml" } pre { (told.join("\n")) } }
    }
}

fn evidence(record: &RunRecord, summary: &Summary) -> Markup {
    let mut facts = vec![];
    if let Some(s) = &summary.started {
        let test_pictures = match (s.test_pictures, s.validation) {
            (0, _) => "none: there are no labels".into(),
            (n, false) => grouped(n),
            (n, true) => {
                format!("not looked at: validated on {} training pictures held out", grouped(n))
            }
        };
        facts.extend([
            ("program", format!("anchorhood {}", s.version)),
            ("device", s.device.clone()),
            ("data", s.data.clone()),
            ("training pictures", format!("{}, {}×{}", grouped(s.pictures), s.size, s.size)),
            ("test pictures", test_pictures),
            ("network", format!("{}, {} weights", s.network, grouped(s.weights))),
            ("batch", s.batch.to_string()),
            ("seed", s.seed.to_string()),
        ]);
    }
    let on = summary.judged_on();
    if let Some(e) = summary.evaluations.last() {
        let (a, n) = (e.accuracy, grouped(e.accuracy.n));
        let how = format!("k = {}, τ = {}, on {n} {on} pictures", a.k, a.temperature);
        facts.push(("kNN", how));
    }
    if let Some(ended) = &summary.ended {
        facts.push(("seconds", format!("{:.1}", ended.seconds)));
        if let (Some(last), Some(best)) = (ended.last, ended.best) {
            let best = format!("{} (chosen by {on} accuracy)", percent(best.top1));
            facts.extend([("top-1, last epoch", percent(last.top1)), ("top-1, best epoch", best)]);
        }
    }
    let resumed = |e: &&Event| matches!(e, Event::RunStarted(s) if s.resumed.is_some());
    let resumed = record.events.iter().filter(resumed).count();
    facts.push(("resumed", format!("{resumed} times")));
    html! {
        div.card {
            table.facts {
                @for (what, value) in facts {
                    tr { td { (what) } td { (value) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LeftOut;
    use crate::summary::tests::example;
    use anchorhood_data::{Labels, Pictures};
    use anchorhood_train::discovery::Neighbourhoods;

    const HOSTILE: &str = "</script></pre><img src=x onerror=alert(1)>\"'";

    fn record(n: usize) -> RunRecord {
        RunRecord {
            name: HOSTILE.into(),
            settings: HOSTILE.into(),
            events: example(true),
            rounds: vec![RoundNeighbourhoods {
                round: 1,
                found: Neighbourhoods::from_parts(
                    1,
                    (0..n as u32).map(|i| (i + 1) % n as u32).collect(),
                    (0..n).map(|i| i < n / 2).collect(),
                    (0..n).map(|i| i as f32).collect(),
                )
                .unwrap(),
            }],
            embedding: Some(Rows::new((0..3 * n).map(|i| (i as f32).sin()).collect(), 3)),
            left_out: Some(LeftOut { lines: 2, first: 7, reason: HOSTILE.into() }),
            strips: vec![],
        }
    }

    fn split(n: usize) -> Split {
        Split {
            pictures: Pictures::new(8, 8, vec![99; n * 8 * 8 * 3]).unwrap(),
            labels: Some(Labels::new(vec![0; n], vec![HOSTILE.into()])),
            names: vec![HOSTILE.into(); n],
        }
    }

    #[test]
    fn names_are_never_markup() {
        let page = report_html(&record(20), Ok(&split(20))).unwrap();
        assert!(page.contains("Surest") && page.contains("map-data"));
        assert!(page.contains("2 lines of metrics.jsonl are no events"));
        assert_eq!(page.matches("Better than raw pixels by 50.0 points").count(), 1);
        assert!(!page.contains("<img src=x"));
        assert_eq!(page.matches("</script>").count(), 2, "the page's own");
    }

    #[test]
    fn other_pictures_than_the_runs_are_not_shown() {
        let page = report_html(&record(20), Ok(&split(19))).unwrap();
        assert!(page.contains("the run has seen 20 pictures, and the data set has 19 now"));
        assert!(!page.contains("Surest"));
        let page = report_html(&RunRecord::default(), Err("they are gone".into())).unwrap();
        assert!(page.contains("they are gone"));
    }

    #[test]
    fn settings_are_told_but_for_the_folder() {
        let settings = "[data]\nset = \"pictures\"\nseen_from = \"/home/me/private\"\nsize = 32\n";
        let record = RunRecord { settings: settings.into(), ..record(20) };
        let page = report_html(&record, Ok(&split(20))).unwrap();
        assert!(page.contains("size = 32") && !page.contains("private"));
    }
}
