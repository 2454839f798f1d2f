//! One page with everything in it: no request leaves it, and it can be sent by mail.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anchorhood_data::Split;
use anchorhood_evaluate::layout;
use anchorhood_files::{AtomicFile, Disk, FileSystem};
use anchorhood_train::{Accuracy, RunStarted};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::charts::write_charts;
use crate::lead::lead;
use crate::sprite::Sprite;
use crate::{
    ReportError, RoundNeighbourhoods, RunRecord, Summary, charts, duration, entropy_svg, gallery,
    grouped,
};

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
    let mut page = String::new();
    let name = escape(&record.name);
    let _ = write!(
        page,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"generator\" content=\"anchorhood {}\"><title>{name}</title>\
         <link rel=\"icon\" href=\"data:,\"><style>{STYLE}</style></head><body>",
        anchorhood_train::VERSION
    );
    page.push_str(&top(&name, &summary));
    page.push_str("<main>");
    if let Some(left_out) = &record.left_out {
        let _ = write!(page, "<p class=\"note\">{}.</p>", escape(&left_out.to_string()));
    }
    if let Err(why) = &pictures {
        let _ = write!(
            page,
            "<h2>Pictures</h2><p class=\"note\">The training pictures are not shown, because {}.</p>",
            escape(why)
        );
    }
    page.push_str(&summary.before_and_after_html());
    if let (Some(memory), Ok(train)) = (&record.embedding, &pictures)
        && !memory.is_empty()
    {
        page.push_str(&lead(memory, train)?);
    }
    page.push_str(&figures(&summary));
    page.push_str(&curves(&summary)?);
    page.push_str(&rounds_table(&summary));
    page.push_str(&neighbourhoods(&record.rounds, pictures.as_ref().ok().copied())?);
    page.push_str(&map(record, pictures.as_ref().ok().copied())?);
    page.push_str(&strips(record));
    page.push_str(&settings(record, &summary));
    let _ = write!(
        page,
        "</main><footer>Made by anchorhood {}. Everything on this page is in this file.</footer>\
         <script>{MAP_SCRIPT}{REPORT_SCRIPT}</script></body></html>",
        anchorhood_train::VERSION
    );
    Ok(page)
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

fn top(name: &str, summary: &Summary) -> String {
    let mut html = format!("<header class=\"top\"><h1>{name}</h1>");
    if let Some(s) = &summary.started {
        let _ = write!(
            html,
            "<p class=\"soft\">{} on {} pictures of {} ({}×{}), {} rounds of {} epochs</p>",
            escape(&s.network),
            grouped(s.pictures),
            escape(&s.data),
            s.size,
            s.size,
            s.rounds + 1,
            s.epochs
        );
    }
    if summary.ended.is_none() {
        html.push_str(
            "<p class=\"note\">This run has not ended: figures are as far as it came.</p>",
        );
    }
    html.push_str(&verdict(summary));
    html.push_str("</header>");
    html
}

/// Whether it was worth it, before all figures.
fn verdict(summary: &Summary) -> String {
    let mut html = String::new();
    if let Some(verdict) = summary.verdict() {
        let class = if verdict.better() { "better" } else { "not" };
        let sentence = escape(&verdict.to_string());
        let _ = write!(html, "<p class=\"verdict {class}\">{sentence}</p>");
    }
    if let Some(choice) = summary.choice() {
        let _ = write!(html, "<p class=\"soft\">{}</p>", escape(&choice));
    }
    html
}

/// Figures in a row, at most; of more, rows are about as long.
const IN_A_ROW: usize = 5;

fn figures(summary: &Summary) -> String {
    let all = all_figures(summary);
    let rows = all.len().div_ceil(IN_A_ROW).max(1);
    let columns = all.len().div_ceil(rows);
    let mut html = format!("<h2>Figures</h2><div class=\"figures\" style=\"--columns:{columns}\">");
    for (value, what) in all {
        let _ = write!(html, "<div class=\"figure\"><b>{value}</b><span>{what}</span></div>");
    }
    html.push_str("</div>");
    html
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
        figure(percent(floor.accuracy.top1), format!("kNN of {}", floor.name));
    }
    if let Some(model) = summary.model() {
        figure(
            percent(model.found),
            "changed copies that find their original, without labels".into(),
        );
        figure(format!("{:.1}", model.effective_rank), "effective rank of the features".into());
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

fn curves(summary: &Summary) -> Result<String, ReportError> {
    let mut html = String::from("<h2>Curves</h2>");
    html.push_str(&chart_figures(summary)?);
    Ok(html)
}

/// The charts of a run as figures of a page; they need the page's [`STYLE`].
pub fn chart_figures(summary: &Summary) -> Result<String, ReportError> {
    let mut html = String::from("<div class=\"charts\">");
    for chart in charts(summary)? {
        let key = match (chart.file, summary.rounds.iter().any(|r| r.consistency.is_some())) {
            ("anchors", true) => {
                "<div class=\"small soft\"><i class=\"key\" style=\"background:var(--blue)\"></i>pictures that are anchors\
                 <i class=\"key\" style=\"background:var(--green)\"></i>anchors whose neighbours are of their class</div>"
            }
            ("anchors", false) => "<div class=\"small soft\">pictures that are anchors</div>",
            _ => "",
        };
        let _ = write!(
            html,
            "<figure class=\"card chart\"><figcaption>{}</figcaption>{key}{}</figure>",
            chart.title, chart.svg
        );
    }
    html.push_str("</div>");
    Ok(html)
}

fn rounds_table(summary: &Summary) -> String {
    let labels = summary.has_accuracy();
    let mut html = String::from("<h2>Rounds</h2><div class=\"scroll card\"><table><tr><th></th>");
    if labels {
        html.push_str("<th>kNN top-1</th><th>top-5</th>");
    }
    html.push_str("<th>an&shy;chors</th>");
    if labels {
        html.push_str("<th>con&shy;sist&shy;ent</th>");
    }
    html.push_str("<th>loss</th><th>time</th></tr>");
    let cell = |html: &mut String, value: Option<String>| {
        let _ = write!(html, "<td>{}</td>", value.unwrap_or_else(|| "–".into()));
    };
    let accuracy = |html: &mut String, a: Option<&Accuracy>| {
        cell(html, a.map(|a| percent(a.top1)));
        cell(html, a.and_then(|a| a.top5).map(percent));
    };
    for floor in &summary.floors {
        let _ = write!(html, "<tr><td>{}</td>", floor.name);
        accuracy(&mut html, Some(&floor.accuracy));
        html.push_str("<td>–</td><td>–</td><td>–</td><td>–</td></tr>");
    }
    for r in &summary.rounds {
        let _ = write!(html, "<tr><td>round {}</td>", r.round);
        if labels {
            accuracy(&mut html, r.accuracy.as_ref());
        }
        cell(&mut html, r.anchors.map(grouped));
        if labels {
            cell(&mut html, r.consistency.and_then(|c| c.share()).map(percent));
        }
        cell(&mut html, r.loss.map(|l| format!("{l:.4}")));
        cell(&mut html, Some(duration(r.seconds)));
        html.push_str("</tr>");
    }
    html.push_str("</table></div>");
    html
}

fn neighbourhoods(
    rounds: &[RoundNeighbourhoods],
    train: Option<&Split>,
) -> Result<String, ReportError> {
    if rounds.is_empty() {
        return Ok(String::new());
    }
    let mut html = String::from(
        "<h2>Neighbourhoods</h2><p>Before each round every picture is compared with all others. Where few stand out as near, \
         entropy is low and the picture is sure of its neighbourhood: these become anchors first.</p>",
    );
    let sprite = train.map(|t| gallery::sprite(rounds, t)).transpose()?;
    if let (Some(sprite), Some(train)) = (&sprite, train) {
        let _ = write!(
            html,
            "<style>.tile{{background-image:url({});background-size:{}% {}%}}</style>",
            sprite.data_uri(),
            sprite.columns * 100,
            sprite.rows * 100
        );
        let judged = match train.labels {
            Some(_) => {
                " A green frame: of the picture's class; red: of another (labels judge here, they never train)."
            }
            None => "",
        };
        let _ = write!(
            html,
            "<p class=\"small soft\">At the left of each group a picture, then its nearest neighbours.{judged}</p>"
        );
    }
    html.push_str("<div class=\"tabs\" data-for=\"rounds\" role=\"tablist\">");
    for RoundNeighbourhoods { round, .. } in rounds {
        let _ = write!(html, "<button role=\"tab\">Round {round}</button>");
    }
    html.push_str("</div>");
    for RoundNeighbourhoods { round, found } in rounds {
        let n = found.len();
        let _ = write!(
            html,
            "<section data-panel=\"rounds\"><figure class=\"card chart\" style=\"max-width:640px\"><figcaption>Entropy before round \
             {round}</figcaption><div class=\"small soft\"><i class=\"key\" style=\"background:var(--blue)\"></i>{} of {} pictures chosen \
             as anchors<i class=\"key\" style=\"background:var(--grey)\"></i>the rest</div>{}</figure>",
            grouped(found.anchor_count()),
            grouped(n),
            entropy_svg(found)?
        );
        if let (Some(sprite), Some(train)) = (&sprite, train) {
            html.push_str(&gallery::gallery(found, train, sprite));
        }
        html.push_str("</section>");
    }
    Ok(html)
}

fn map(record: &RunRecord, train: Option<&Split>) -> Result<String, ReportError> {
    let Some(embedding) = record.embedding.as_ref().filter(|e| !e.is_empty()) else {
        return Ok(String::new());
    };
    let sheet = layout(&embedding.vectors, embedding.dim, MOST_ON_MAP);
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
    let how = match sheet.chosen.len() == embedding.len() {
        true => format!("All {} pictures", grouped(embedding.len())),
        false => format!(
            "{} of {} pictures, evenly taken,",
            grouped(sheet.chosen.len()),
            grouped(embedding.len())
        ),
    };
    let colours =
        if labels.is_some() { " Colours are classes, which training never saw." } else { "" };
    let swap = match sprite {
        Some(_) => "<button data-pictures>Show pictures</button>",
        None => "",
    };
    Ok(format!(
        "<h2>Map</h2><p>{how} laid out so that alike ones are near (t-SNE of the memory).{colours} Point at one to see it; drag to \
         move, wheel or two fingers to magnify.</p><div class=\"card map\"><div class=\"tabs\">{swap}<button \
         data-home>Whole map</button></div><canvas role=\"img\" aria-label=\"map of the embeddings\"></canvas><div class=\"tip\"></div><div \
         class=\"legend\"></div></div><script type=\"application/json\" id=\"map-data\">{data}</script>"
    ))
}

fn strips(record: &RunRecord) -> String {
    let mut html = String::from("<h2>Where the network looked</h2>");
    if record.strips.is_empty() {
        let _ = write!(
            html,
            "<p class=\"soft\">No strips have been drawn. <code>anchorhood attention {0} --pictures 1,5,9 -o runs/{0}/attention</code> draws \
             some; make the report again to see them here.</p>",
            escape(&record.name)
        );
        return html;
    }
    html.push_str(
        "<p>Each strip: a picture, then the same under the heat of what placed it near its neighbours, round by round. \
         Frames: grey, it stood alone; green, its neighbours are of its class; red, some are not.</p>",
    );
    for strip in &record.strips {
        let name = escape(&strip.name);
        let _ = write!(
            html,
            "<img class=\"strip\" alt=\"attention: {name}\" title=\"{name}\" src=\"data:image/png;base64,{}\">",
            STANDARD.encode(&strip.png)
        );
    }
    html
}

fn settings(record: &RunRecord, summary: &Summary) -> String {
    let mut html = String::from("<h2>Evidence</h2><div class=\"card\"><table class=\"facts\">");
    let mut fact = |what: &str, value: String| {
        let _ = write!(html, "<tr><td>{what}</td><td>{}</td></tr>", escape(&value));
    };
    if let Some(s) = &summary.started {
        evidence(s, &mut fact);
    }
    if let Some(e) = summary.evaluations.last() {
        let a = e.accuracy;
        fact(
            "kNN",
            format!(
                "k = {}, τ = {}, on {} {} pictures",
                a.k,
                a.temperature,
                grouped(a.n),
                summary.judged_on()
            ),
        );
    }
    if let Some(ended) = &summary.ended {
        fact("seconds", format!("{:.1}", ended.seconds));
        if let (Some(last), Some(best)) = (ended.last, ended.best) {
            fact("top-1, last epoch", percent(last.top1));
            fact(
                "top-1, best epoch",
                format!("{} (chosen by {} accuracy)", percent(best.top1), summary.judged_on()),
            );
        }
    }
    let resumed = record
        .events
        .iter()
        .filter(|e| matches!(e, anchorhood_train::Event::RunStarted(s) if s.resumed.is_some()));
    fact("resumed", format!("{} times", resumed.count()));
    html.push_str("</table></div>");
    // The folder a run was started in is nobody's business whom the page is sent to.
    let told = |line: &&str| !line.starts_with("seen_from");
    let told: Vec<&str> = record.settings.lines().filter(told).collect();
    let _ = write!(
        html,
        "<h2>Settings</h2><details><summary>config.toml</summary><pre>{}</pre></details>",
        escape(&told.join("\n"))
    );
    html
}

fn evidence(s: &RunStarted, fact: &mut dyn FnMut(&str, String)) {
    fact("program", format!("anchorhood {}", s.version));
    fact("device", s.device.clone());
    fact("data", s.data.clone());
    fact("training pictures", format!("{}, {}×{}", grouped(s.pictures), s.size, s.size));
    fact(
        "test pictures",
        match (s.test_pictures, s.validation) {
            (0, _) => "none: there are no labels".into(),
            (n, false) => grouped(n),
            (n, true) => {
                format!("not looked at: validated on {} training pictures held out", grouped(n))
            }
        },
    );
    fact("network", format!("{}, {} weights", s.network, grouped(s.weights)));
    fact("batch", s.batch.to_string());
    fact("seed", s.seed.to_string());
}

/// Text as HTML shows it, in elements and in quoted attributes.
pub fn escape(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
    }
    html
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Embedding;
    use crate::LeftOut;
    use crate::summary::tests::example;
    use anchorhood_data::{Labels, Pictures};
    use anchorhood_discover::Neighbourhoods;

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
            embedding: Some(Embedding {
                dim: 3,
                vectors: (0..3 * n).map(|i| (i as f32).sin()).collect(),
            }),
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

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1281167].map(grouped), ["0", "999", "1,000", "1,281,167"]);
    }
}
