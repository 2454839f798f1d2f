//! A comparison as one page that needs nothing else: the table, the curves, the evidence.

use std::fmt::Write;

use anchorhood_report::{STYLE, escape};

use super::Standings;
use crate::ReproduceError;

/// The page.
pub(super) fn page(standings: &Standings) -> Result<String, ReproduceError> {
    let version = anchorhood_train::VERSION;
    let title = escape(&format!(
        "Methods compared, {} for each",
        standings.allowance
    ));
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"generator\" content=\"anchorhood {version}\"><title>{title}</title>\
         <link rel=\"icon\" href=\"data:,\"><style>{STYLE}</style></head><body>\
         <header class=\"top\"><h1>{title}</h1></header><main>"
    );
    let _ = write!(
        html,
        "<h2>Standings</h2><div class=\"scroll card\"><table>{}</table></div>\
         <h2>Curves</h2><figure class=\"card chart\"><figcaption>kNN over seconds of training, discovery and judging\
         </figcaption>{}</figure><h2>Evidence</h2><ul>",
        table(standings),
        standings.svg(false)?
    );
    for line in standings.evidence() {
        let _ = write!(html, "<li>{}</li>", escape(&line));
    }
    let _ = write!(
        html,
        "</ul></main><footer>Made by anchorhood {version}. Everything on this page is in this file.</footer></body></html>"
    );
    Ok(html)
}

fn table(standings: &Standings) -> String {
    let rows = standings.rows();
    let rows = rows.iter().enumerate().map(|(i, row)| {
        let tag = if i == 0 { "th" } else { "td" };
        let cells = row
            .iter()
            .map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)));
        format!("<tr>{}</tr>", cells.collect::<String>())
    });
    rows.collect()
}
