//! A run's event log, and what a report makes of it.

use anchorhood_report::{Summary, chart_figures, curve_svg, read_metrics};
use anchorhood_train::Event;

use crate::scratch::with_file;

/// What was read is told, drawn, and written again the same.
pub fn read(bytes: &[u8]) -> Option<()> {
    let log = with_file("metrics.jsonl", bytes, read_metrics).ok()?;
    let (events, left_out) = (log.events, log.left_out);
    let lines = bytes.iter().filter(|b| **b == b'\n').count();
    assert!(events.len() + left_out.map_or(0, |l| l.lines) <= lines);
    for event in &events {
        let line = serde_json::to_string(event).expect("plain values become JSON");
        let again: Event = serde_json::from_str(&line).expect("what was written is read");
        assert_eq!(again, *event);
    }
    let summary = Summary::of(&events);
    assert!(!summary.table().is_empty() || events.is_empty());
    let _ = (chart_figures(&summary), curve_svg(&summary));
    Some(())
}

pub fn seeds() -> Vec<Vec<u8>> {
    let whole = LOG.replace("\n ", "");
    let lines: Vec<&str> = whole.lines().collect();
    let log = with_file("metrics.jsonl", whole.as_bytes(), read_metrics).expect("a log");
    assert_eq!((log.events.len(), log.left_out), (lines.len(), None));
    let rounds = |n: usize| format!("{}\n{}\n", lines[0], lines[1..5].join("\n").repeat(n));
    // A round of such a number had all before it made up.
    let far = lines[2].replace(r#""round":0"#, r#""round":4294967295"#) + "\n";
    let all = [whole.clone(), rounds(1), far, "\n\n".into()];
    all.map(String::into_bytes).into()
}

/// Of each kind of event a line, which goes on in lines that begin with a space.
const LOG: &str = r#"{"event":"run_started","version":"0.1.0","device":"2 threads",
 "data":"shapes","pictures":5000,"size":32,"test_pictures":1000,"network":"resnet18",
 "weights":123,"batch":64,"rounds":2,"epochs":2,"seed":0,"resumed":null}
{"event":"round_started","round":0,"rounds":2}
{"event":"epoch_ended","round":0,"epoch":0,"epochs":2,"loss":7.25,"rate":0.03,
 "pictures_per_second":900.0,"seconds":5.5}
{"event":"evaluated","of":"raw_pixels","top1":0.4,"top5":0.8,"n":1000,"k":20,
 "temperature":0.07,"seconds":0.25}
{"event":"discovered","round":1,"anchors":2500,"pictures":5000,"k":1,"mean_entropy":7.5,
 "anchor_entropy":6.5,"consistency":{"consistent_anchors":2000,"anchors":2500,
 "consistent_pairs":2000,"pairs":2500},"seconds":0.5}
{"event":"epoch_ended","round":1,"epoch":0,"epochs":2,"loss":6.25,"rate":0.03,
 "pictures_per_second":900.0,"seconds":5.5}
{"event":"evaluated","of":"trained","round":1,"epoch":0,"top1":0.9,"top5":null,"n":1000,
 "k":20,"temperature":0.07,"seconds":0.25}
{"event":"label_free","of":"trained","round":1,"epoch":0,"pictures":512,"found":0.5,
 "agreement":0.25,"score":0.35,"effective_rank":9.5,"uniformity":-2.5,"chosen":true,
 "seconds":0.25}
{"event":"stopped_early","round":1,"epoch":0,"worse":3}
{"event":"warning","message":"something"}
{"event":"run_ended","seconds":30.5,"loss":6.25,
 "last":{"top1":0.9,"top5":null,"n":1000,"k":20,"temperature":0.07},"best":null}
"#;
