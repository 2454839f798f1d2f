//! A real browser walks through the page, and leaves pictures of what it saw under target/tmp/page.
//! With `ANCHORHOOD_TOUR`, the folder in which docs/tutorial.md was gone through, it walks there and
//! leaves the images of the documents in docs/images.

use std::path::{Path, PathBuf};

use anchorhood_testing::variable;

use crate::clients;
use crate::common::trained;
use crate::search::indexed;
use crate::serve::served::Served;

fn walk(served: &Served, query: &Path, to: &Path, name: &str) {
    let args = [Path::new(&served.address), query, to, Path::new(name)];
    let _skipped_or_done = clients::python("browser.py", &["playwright"], &args);
}

fn aside() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("page")
}

#[test]
#[ignore = "long: needs a browser"]
fn a_browser_walks_through_an_index() {
    let sandbox = indexed("");
    let served = Served::start(&sandbox, &["p.index"]);
    walk(&served, &sandbox.path("pictures/3.png"), &aside(), "index");
}

#[test]
#[ignore = "long: needs a browser"]
fn a_browser_walks_through_a_run() {
    let sandbox = trained("");
    let served = Served::start(&sandbox, &["a"]);
    let query = sandbox.path("query.png");
    crate::folders::picture(5).save(&query).unwrap();
    walk(&served, &query, &aside(), "run");
}

#[test]
#[ignore = "long: needs a browser"]
fn the_report_is_a_page() {
    let sandbox = trained("");
    let report = sandbox.path("runs/a/report.html");
    let _skipped_or_done = clients::python("report.py", &["playwright"], &[&report, &aside()]);
}

#[test]
#[ignore = "long: needs a browser"]
fn pictures_for_the_documents() {
    let Some(tour) = variable("ANCHORHOOD_TOUR", "the folder of a tour") else {
        return;
    };
    let tour = Path::new(&tour);
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    let aside = aside();
    for (what, name) in [("photos.index", "tour-index"), ("shapes-1", "tour-run")] {
        let served = Served::start_in(tour, &[what]);
        walk(&served, &tour.join("query.png"), &aside, name);
    }
    for name in SHOWN {
        let file = format!("{name}.webp");
        std::fs::copy(aside.join(&file), docs.join(&file)).expect("the browser left it");
    }
}

/// The images that docs/tutorial.md and the README show.
const SHOWN: [&str; 8] = [
    "tour-index-search",
    "tour-index-clusters",
    "tour-index-map",
    "tour-index-selected",
    "tour-index-phone-search",
    "tour-run-attention",
    "tour-run-neighbourhoods",
    "tour-run-curves",
];
