//! Results as one page that needs nothing else: the table, the plots, the strips of pictures, the evidence.

use std::fmt::Write;
use std::path::Path;

use anchorhood_report::escape as escaped;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::experiment::distinct;
use crate::runs_table::COLUMNS;
use crate::{Experiment, ReproduceError, Results, plot};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}\
table{border-collapse:collapse;margin:1rem 0}th,td{padding:.25rem .7rem;border-bottom:1px solid #ddd;text-align:right}\
th:first-child,td:first-child{text-align:left}.paper{color:#666}svg,img{max-width:100%;height:auto}\
.smaller{background:#fff4d6;padding:.5rem 1rem;border-left:4px solid #d9a400}.failure{border:3px solid #c00}\
.runs td:last-child{text-align:left}code{word-break:break-all}";

/// The page. Strips are read from `folder`.
pub fn page(
    results: &Results,
    experiment: &Experiment,
    folder: &Path,
) -> Result<String, ReproduceError> {
    let title = escaped(&format!("{}: {}", results.paper, results.title));
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n\
         <p>Scale: {}. Top-1 accuracy in percent, ours beside the paper's.</p>\n",
        results.scale
    );
    if !results.smaller_than_the_paper.is_empty() {
        html.push_str("<div class=\"smaller\"><b>Smaller than the paper</b>");
        list(&mut html, &results.smaller_than_the_paper);
        html.push_str("</div>\n");
    }
    table(&mut html, results);
    for svg in plot::plots(results, experiment)? {
        let _ = writeln!(html, "<figure>{svg}</figure>");
    }
    for picture in &results.pictures {
        let path = folder.join(&picture.file);
        let bytes = std::fs::read(&path).map_err(ReproduceError::io(&path))?;
        let (class, kind) = match picture.chosen.failure {
            true => (" class=\"failure\"", ", a failure"),
            false => ("", ""),
        };
        let said = format!(
            "Picture {}, {}{kind}: itself, then each round",
            picture.chosen.number, picture.chosen.class
        );
        let said = escaped(&said);
        let _ = writeln!(
            html,
            "<figure><img{class} alt=\"{said}\" src=\"data:image/png;base64,{}\"><figcaption>{said}</figcaption></figure>",
            STANDARD.encode(bytes)
        );
    }
    runs(&mut html, results)?;
    let left_out: Vec<String> = results.reasons().iter().map(|r| r.to_string()).collect();
    for (title, items) in [
        ("Not run", &left_out),
        ("Notes", &results.notes),
        ("Evidence", &results.evidence()),
    ] {
        if !items.is_empty() {
            let _ = write!(html, "<h2>{title}</h2>");
            list(&mut html, items);
        }
    }
    html.push_str("</body></html>\n");
    Ok(html)
}

fn list(html: &mut String, items: &[String]) {
    html.push_str("<ul>");
    for item in items {
        let _ = write!(html, "<li>{}</li>", escaped(item));
    }
    html.push_str("</ul>\n");
}

/// What each run took, and its own task over the epochs.
fn runs(html: &mut String, results: &Results) -> Result<(), ReproduceError> {
    let rows = results.runs_table();
    if rows.is_empty() {
        return Ok(());
    }
    let line = |cells: &[&str], tag: &str| {
        let cells = cells
            .iter()
            .map(|c| format!("<{tag}>{}</{tag}>", escaped(c)));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    html.push_str("<h2>Runs</h2><table class=\"runs\">");
    html.push_str(&line(&COLUMNS, "th"));
    for row in &rows {
        html.push_str(&line(&row.each_ref().map(String::as_str), "td"));
    }
    html.push_str("</table>\n");
    if let Some(svg) = results.tasks_svg()? {
        let _ = writeln!(
            html,
            "<figure>{svg}<figcaption>How well each did what it is taught by; dashed: by guessing</figcaption></figure>"
        );
    }
    Ok(())
}

fn table(html: &mut String, results: &Results) {
    let columns = distinct(results.cells.iter().map(|c| c.column.as_str()));
    let rows = distinct(results.cells.iter().map(|c| c.row.as_str()));
    html.push_str("<table><tr><th></th>");
    for column in &columns {
        let column = escaped(column);
        let ours = results.ours();
        let _ = write!(
            html,
            "<th>{column}, {ours}</th><th class=\"paper\">paper</th>"
        );
    }
    html.push_str("</tr>\n");
    for row in rows {
        let _ = write!(html, "<tr><td>{}</td>", escaped(row));
        for column in &columns {
            let is = |c: &&crate::Cell| c.row == row && c.column == *column;
            let (ours, theirs) = (results.cells.iter().find(is))
                .map_or(Default::default(), |c| (c.ours(), c.theirs()));
            let _ = write!(html, "<td>{ours}</td><td class=\"paper\">{theirs}</td>");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table>\n");
}
