//! The paper's tables and figures, each declared once.

use anchorhood_models::{ALEXNET, Backbone, RESNET18, RESNET101};
use anchorhood_train::CurriculumChoice::{Linear, OneOff};
use anchorhood_train::{MethodSpec, methods};

use crate::paper::{self, DASH};
use crate::small_set::{self, small_set};
use crate::{Entry, Experiment, Plot, Protocol, ReproduceError, Start, Subject, System};

/// The paper's epochs a round, and those of Instance when it may train as long as AND does.
const EPOCHS: usize = 200;
const AS_LONG: usize = 5 * EPOCHS;

/// All experiments, in the paper's order.
pub fn experiments() -> Vec<Experiment> {
    vec![
        table_1(),
        table_2(),
        table_3(),
        small_set(),
        table_4(),
        table_5(),
        neighbours(),
        rounds(),
        epochs(),
        one_off(),
        quality(),
        attention(),
    ]
}

/// An experiment by name, or all of them by `all`.
pub fn find(name: &str) -> Result<Vec<Experiment>, ReproduceError> {
    let all = experiments();
    if name == "all" {
        return Ok(all);
    }
    let known: Vec<&str> = all.iter().map(|e| e.name).collect();
    let known = known.join(", ");
    let found = all.into_iter().find(|e| e.name == name);
    found.map(|e| vec![e]).ok_or_else(|| ReproduceError::Unknown { name: name.into(), known })
}

/// The paper's rivals that there are here, by the names of their rows.
const RIVALS: &[(&str, &MethodSpec)] = &[
    ("BiGAN", &methods::BIGAN),
    ("Colour", &methods::COLOUR),
    ("Context", &methods::CONTEXT),
    ("Counting", &methods::COUNTING),
    ("DeepCluster", &methods::DEEPCLUSTER),
    ("Jigsaw", &methods::JIGSAW),
    ("NAT", &methods::NAT),
    ("Split-Brain", &methods::SPLIT_BRAIN),
];

/// The method that a row of the paper's is about, where we have it.
fn ours(row: &str) -> Option<System> {
    Some(match row {
        "AND" => System::AND,
        "Instance" => System::Instance,
        "Random" => System::Untrained,
        "Supervised" => System::Supervised,
        _ => return None,
    })
}

/// The rival that a row is about, where we have it.
fn rival(row: &str) -> Option<System> {
    let found = RIVALS.iter().find(|(name, _)| *name == row)?;
    Some(System::Rival(found.1))
}

fn subject(
    set: &'static str,
    network: &'static Backbone,
    method: System,
    epochs: usize,
) -> Subject {
    Subject { set, network, method, epochs, settings: &[] }
}

fn entry(
    row: impl Into<String>,
    column: &'static str,
    ours: Option<(Subject, Protocol)>,
    paper: f64,
) -> Entry {
    Entry { row: row.into(), column, ours, paper: paper::figure(paper), x: None }
}

const SMALL: [(&str, &str); 3] =
    [("CIFAR-10", "cifar10"), ("CIFAR-100", "cifar100"), ("SVHN", "svhn")];

fn table_1() -> Experiment {
    let mut entries = vec![];
    for (group, protocol, rows) in [
        ("kNN / FC", Protocol::Knn, paper::TABLE_1_KNN),
        ("linear / conv5", Protocol::Linear("conv5"), paper::TABLE_1_LINEAR),
    ] {
        let mut add = |row: &str, method: Option<System>, epochs, figures: [f64; 3]| {
            for ((column, set), figure) in SMALL.into_iter().zip(figures) {
                let ours = method.map(|m| (subject(set, &ALEXNET, m, epochs), protocol));
                entries.push(entry(format!("{group}: {row}"), column, ours, figure));
            }
        };
        add("Random", Some(System::Untrained), EPOCHS, [DASH; 3]);
        for (row, figures) in rows {
            match rival(row) {
                Some(rival) => add(row, Some(rival), AS_LONG, figures),
                None => add(row, ours(row), EPOCHS, figures),
            }
            if row == "Instance" {
                let longer = "Instance, as many epochs as AND";
                add(longer, Some(System::Instance), AS_LONG, [DASH; 3]);
            }
        }
        for (row, method) in RIVALS {
            if rows.iter().all(|(printed, _)| printed != row) {
                let ours = subject("cifar10", &ALEXNET, System::Rival(method), AS_LONG);
                let row = format!("{group}: {row}");
                entries.push(entry(row, SMALL[0].0, Some((ours, protocol)), DASH));
            }
        }
    }
    Experiment {
        name: "table1",
        title: "Small data sets",
        place: "Table 1",
        notes: &[
            "AlexNet. Instance is round 0 of the AND run beside it, with its epochs; the row after \
             it has as many as AND in all.",
            "Rivals are run by their own recipes (docs/reference/methods.md), with as many epochs as \
             AND in all; a dash stands where the paper has them on ImageNet alone.",
        ],
        plot: Plot::Bars,
        entries,
    }
}

fn table_2() -> Experiment {
    const COLUMNS: [(&str, Protocol); 7] = [
        ("conv1", Protocol::Linear("conv1")),
        ("conv2", Protocol::Linear("conv2")),
        ("conv3", Protocol::Linear("conv3")),
        ("conv4", Protocol::Linear("conv4")),
        ("conv5", Protocol::Linear("conv5")),
        ("FC", Protocol::Linear("fc")),
        ("kNN / FC", Protocol::Knn),
    ];
    let mut entries = vec![];
    for (row, figures) in paper::TABLE_2 {
        for ((column, protocol), figure) in COLUMNS.into_iter().zip(figures) {
            let ours = ours(row).map(|m| (subject("imagenet", &ALEXNET, m, EPOCHS), protocol));
            entries.push(entry(row, column, ours, figure));
        }
    }
    Experiment {
        name: "table2",
        title: "ImageNet, layer by layer",
        place: "Table 2",
        notes: &["AlexNet; a linear classifier on each layer, weighted kNN in the last column."],
        plot: Plot::Bars,
        entries,
    }
}

fn table_3() -> Experiment {
    let mut entries = vec![];
    for (row, figures) in paper::TABLE_3 {
        for ((column, set), figure) in
            [("CUB-200", "cub200"), ("Dogs", "dogs")].into_iter().zip(figures)
        {
            let subject =
                |m| Subject { settings: small_set::BEST, ..subject(set, &RESNET18, m, EPOCHS) };
            let ours = ours(row).map(|m| (subject(m), Protocol::Knn));
            entries.push(entry(row, column, ours, figure));
        }
    }
    Experiment {
        name: "table3",
        title: "Fine-grained data sets",
        place: "Table 3",
        notes: &[
            "ResNet18. The paper does not name the classifier; ours is weighted kNN on FC.",
            "Crops from the whole picture, mirrors and ten times the weight decay, which the paper \
             leaves open: what few pictures are learnt best by (`reproduce smallset`).",
        ],
        plot: Plot::Bars,
        entries,
    }
}

fn table_4() -> Experiment {
    let mut entries = vec![];
    let rows = [("AlexNet", &ALEXNET), ("ResNet18", &RESNET18), ("ResNet101", &RESNET101)];
    for (i, (row, network)) in rows.into_iter().enumerate() {
        let mut add = |column, set, figure| {
            let ours = (subject(set, network, System::AND, EPOCHS), Protocol::Knn);
            entries.push(entry(row, column, Some(ours), figure));
        };
        add("CIFAR-10", "cifar10", paper::TABLE_4[i]);
        if let Some(figure) = paper::BACKBONE_IMAGENET.get(i) {
            add("ImageNet", "imagenet", *figure);
        }
    }
    Experiment {
        name: "table4",
        title: "Networks",
        place: "Table 4, and the text beside it for ImageNet",
        notes: &[],
        plot: Plot::Bars,
        entries,
    }
}

fn and(neighbours: usize, rounds: usize) -> System {
    System::And { neighbours, rounds, curriculum: Linear, start: Start::Instance }
}

/// A cell of the component analysis: ResNet18 on CIFAR-10, weighted kNN.
fn component(row: impl Into<String>, method: System, epochs: usize, figure: f64) -> Entry {
    let ours = (subject("cifar10", &RESNET18, method, epochs), Protocol::Knn);
    entry(row, "CIFAR-10", Some(ours), figure)
}

/// The same, over a number.
fn numbered(x: usize, row: String, method: System, epochs: usize, figure: f64) -> Entry {
    Entry { x: Some(x as f64), ..component(row, method, epochs, figure) }
}

fn table_5() -> Experiment {
    let random = System::And { neighbours: 1, rounds: 4, curriculum: Linear, start: Start::Random };
    Experiment {
        name: "table5",
        title: "Initialisation",
        place: "Table 5",
        notes: &[
            "Random: the first neighbourhoods are discovered in the features of a network nobody \
             trained, and there is no round 0.",
        ],
        plot: Plot::Bars,
        entries: vec![
            component("Random model", random, EPOCHS, paper::TABLE_5[0]),
            component("Instance model", System::AND, EPOCHS, paper::TABLE_5[1]),
        ],
    }
}

fn neighbours() -> Experiment {
    let cell = |(k, figure)| numbered(k, format!("k = {k}"), and(k, 4), EPOCHS, figure);
    let others = [5, 10, 20, 50, 100].map(|k| (k, DASH));
    Experiment {
        name: "neighbours",
        title: "Neighbourhood size",
        place: "Figure 4",
        notes: &["The paper draws this without numbers; its text says that k = 1 is the best."],
        plot: Plot::Line("k, neighbours of an anchor"),
        entries: [(1, paper::DEFAULTS)].into_iter().chain(others).map(cell).collect(),
    }
}

fn rounds() -> Experiment {
    let cell = |r| {
        let figure = if r == 4 { paper::DEFAULTS } else { DASH };
        numbered(r, format!("R = {r}"), and(1, r), EPOCHS, figure)
    };
    Experiment {
        name: "rounds",
        title: "Curriculum rounds",
        place: "Figure 5",
        notes: &[
            "The paper draws this without numbers; its text says that four rounds are a good \
             trade-off.",
        ],
        plot: Plot::Line("R, rounds after round 0"),
        entries: [1, 2, 3, 4, 5, 6].map(cell).into(),
    }
}

fn epochs() -> Experiment {
    let [fifty, hundred] = paper::EPOCHS;
    let cell = |(n, figure)| numbered(n, format!("{n} epochs a round"), System::AND, n, figure);
    Experiment {
        name: "epochs",
        title: "Epochs a round",
        place: "Section 4.2, \"Curriculum round\"",
        notes: &["Rows are named after the paper's epochs, whatever the scale."],
        plot: Plot::Line("epochs a round in the paper"),
        entries: [(50, fifty), (100, hundred), (200, paper::DEFAULTS)].map(cell).into(),
    }
}

fn one_off() -> Experiment {
    let at_once =
        System::And { neighbours: 1, rounds: 4, curriculum: OneOff, start: Start::Instance };
    let [one_off, curriculum] = paper::TABLE_6;
    Experiment {
        name: "oneoff",
        title: "One-off or curriculum",
        place: "Table 6",
        notes: &[
            "The paper does not say how many rounds its one-off discovery has. Both readings are \
             run, and its figure stands beside both.",
        ],
        plot: Plot::Bars,
        entries: vec![
            component("One-off, one round", and(1, 1), EPOCHS, one_off),
            component("One-off, four rounds", at_once, EPOCHS, one_off),
            component("Curriculum", System::AND, EPOCHS, curriculum),
        ],
    }
}

fn quality() -> Experiment {
    Experiment {
        name: "quality",
        title: "Neighbourhood quality over the rounds",
        place: "Figure 6",
        notes: &[
            "A neighbourhood is consistent where every neighbour is of its anchor's class. The \
             paper draws this without numbers.",
        ],
        plot: Plot::Quality,
        entries: vec![component("AND", System::AND, EPOCHS, paper::DEFAULTS)],
    }
}

fn attention() -> Experiment {
    Experiment {
        name: "attention",
        title: "Learning attention over the rounds",
        place: "Figure 7",
        notes: &[
            "Grad-CAM on conv5. Five pictures whose last neighbours are of their class, each of \
             another class, and one failure. The paper shows ImageNet, this CIFAR-10.",
        ],
        plot: Plot::Attention,
        entries: vec![component("AND", System::AND, EPOCHS, paper::DEFAULTS)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_data::find_dataset;

    fn cell(experiment: &str, row: &str, column: &str) -> Entry {
        let found = find(experiment).unwrap().remove(0);
        let is = |e: &&Entry| e.row == row && e.column == column;
        let entry = found.entries.iter().find(is).cloned();
        entry.unwrap_or_else(|| panic!("{experiment}: {row}, {column}"))
    }

    #[test]
    fn every_cell_is_there_once() {
        for e in experiments() {
            for (i, entry) in e.entries.iter().enumerate() {
                let same = |o: &&Entry| o.row == entry.row && o.column == entry.column;
                let first = e.entries.iter().position(|o| same(&o));
                assert_eq!(first, Some(i), "{}: {}", e.name, entry.row);
                let known = |s: Subject| find_dataset(s.set).is_some() || s.set == crate::SMALL_SET;
                assert!(entry.ours.is_none_or(|(s, _)| known(s)), "{}", entry.row);
                let row = e.entries.iter().filter(|o| o.row == entry.row);
                let says = |o: &Entry| o.ours.is_some() || o.paper.is_some();
                assert!(row.into_iter().any(says), "{}", entry.row);
            }
            assert!(e.entries.iter().any(|entry| entry.ours.is_some()));
        }
    }

    /// Read off the paper once more, by hand.
    #[test]
    fn the_papers_figures_stand_in_their_places() {
        for (experiment, row, column, figure) in [
            ("table1", "kNN / FC: AND", "CIFAR-10", 74.8),
            ("table1", "linear / conv5: AND", "CIFAR-100", 47.9),
            ("table1", "linear / conv5: DeepCluster", "SVHN", 92.0),
            ("table1", "kNN / FC: Supervised", "SVHN", 96.5),
            ("table2", "AND", "conv4", 39.7),
            ("table2", "Random", "kNN / FC", 3.5),
            ("table2", "Split-Brain", "kNN / FC", 11.8),
            ("table2", "NAT", "FC", 36.0),
            ("table3", "AND", "Dogs", 32.3),
            ("table3", "Instance", "CUB-200", 11.6),
            ("table4", "ResNet101", "CIFAR-10", 88.4),
            ("table4", "ResNet18", "ImageNet", 41.2),
            ("table5", "Random model", "CIFAR-10", 85.7),
            ("epochs", "50 epochs a round", "CIFAR-10", 83.3),
            ("oneoff", "Curriculum", "CIFAR-10", 86.3),
        ] {
            let found = cell(experiment, row, column).paper;
            assert_eq!(found, Some(figure), "{experiment} {row}");
        }
        assert_eq!(cell("table2", "Supervised", "FC").paper, None);
        let (ours, _) = cell("table1", "kNN / FC: DeepCluster", "SVHN").ours.unwrap();
        assert_eq!(ours.method, System::Rival(&methods::DEEPCLUSTER));
        assert_eq!(ours.epochs, AS_LONG);
        let nat = cell("table1", "linear / conv5: NAT", "CIFAR-10");
        assert!(nat.ours.is_some() && nat.paper.is_none());
    }

    #[test]
    fn an_unknown_name_hears_which_there_are() {
        let said = find("table9").unwrap_err().to_string();
        for part in ["table9", "table1", "oneoff", "attention", "all"] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(find("all").unwrap().len(), 12);
    }
}
