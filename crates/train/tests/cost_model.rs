//! The cost model: what follows from what, and how far it is from what was measured.

use anchorhood_train::{COST_MODELS, MachineCosts, Workload};

const MACHINE: MachineCosts = MachineCosts {
    name: "a test",
    step: 1e-3,
    view: 1e-5,
    loss: 1e-14,
    scan: 1e-13,
    link: 1e10,
    latency: 1e-5,
    memory: 1e11,
    base: 1e9,
};

fn work(pictures: f64, ranks: f64) -> Workload {
    Workload {
        pictures,
        ranks,
        batch: 128.0,
        views: 1.0,
        dim: 128.0,
        neighbours: 1.0,
        weights: 1e7,
        loss_rows: None,
    }
}

#[test]
fn sharding_divides_memory_and_not_work() {
    let (one, eight) = (work(1e7, 1.0), work(1e7, 8.0));
    let of = |w: &Workload, part: usize| w.step_seconds(&MACHINE).0[part].1;
    assert_eq!(of(&one, 2), of(&eight, 2));
    assert_eq!(of(&one, 3), 0.0);
    let bank = |w: &Workload| w.memory(&MACHINE).0[0].1;
    assert_eq!(bank(&one), 8.0 * bank(&eight));
    // So does what is known of its pictures; but for a moment, an epoch's order is whole.
    let [one_has, eight_have] = [&one, &eight].map(|w| w.memory(&MACHINE));
    for part in [2, 3] {
        assert_eq!(one_has.0[part].1, 8.0 * eight_have.0[part].1);
    }
    assert_eq!([one_has, eight_have].map(|m| m.0[4].1), [0.0, 4e7]);
    let compared = |w: &Workload| w.discovery_seconds(&MACHINE).0[0].1;
    assert!((compared(&one) / compared(&eight) - 8.0).abs() < 1e-9);
}

#[test]
fn a_sample_bounds_the_loss() {
    let mut all = work(1e9, 8.0);
    let exact = all.step_seconds(&MACHINE);
    assert_eq!(exact.dominant(), "loss");
    all.loss_rows = Some(65_536.0);
    let ratio = all.step_seconds(&MACHINE).0[2].1 / exact.0[2].1;
    assert!((ratio * 1e9 / 65_536.0 - 1.0).abs() < 1e-9, "{ratio}");
}

#[test]
fn parts_overtake_each_other_where_it_says() {
    let n = work(1.0, 4.0).pictures_where_loss_dominates(&MACHINE);
    let at = |n: f64| {
        let step = work(n, 4.0).step_seconds(&MACHINE);
        step.0[2].1 > step.0[1].1
    };
    assert!(!at(0.99 * n) && at(1.01 * n));
    let ranks = work(1e6, 1.0).ranks_where_exchange_dominates(&MACHINE);
    let ranks = ranks.unwrap();
    let more = |ranks: f64| work(1e6, ranks).step_seconds(&MACHINE).dominant() == "exchange";
    assert!(more(ranks) && !more(ranks / 2.0), "{ranks}");
}

/// Milliseconds of the quickest step of `mpirun -n P anchorhood bench loss --dim 64 --batch 128 --threads 1` on two cores, by rows, for 1, 2 and 4
/// processes (tools/scale); the model's terms were found from the first three lines alone (`docs/scale.md`).
const MEASURED: [(f64, [f64; 3]); 7] = [
    (1e4, [4.35, 1.97, 2.25]),
    (3e5, [126.97, 58.89, 64.75]),
    (3e6, [1161.38, 593.47, 583.04]),
    (3e4, [12.88, 6.72, 7.24]),
    (1e5, [39.05, 21.65, 22.17]),
    (1e6, [404.53, 223.98, 197.78]),
    (1e7, [3914.58, 2013.89, 1984.18]),
];
const CORES: f64 = 2.0;

#[test]
fn it_is_within_15_percent_of_what_was_measured() {
    let (_, core) = COST_MODELS.iter().find(|m| m.0 == "cpu-core").unwrap();
    // Processes of one machine: 71 µs a doubling of them for all of a step's exchanges.
    let machine = MachineCosts {
        link: f64::INFINITY,
        latency: 71e-6 / 9.0,
        ..*core
    };
    for (rows, measured) in MEASURED {
        for (ranks, milliseconds) in [1.0, 2.0, 4.0].into_iter().zip(measured) {
            let work = Workload {
                dim: 64.0,
                batch: 128.0 / ranks,
                ..work(rows, ranks)
            };
            let step = work.step_seconds(&machine);
            // Of more processes than cores, several take turns on each.
            let turns = (ranks / CORES).max(1.0);
            let model = 1e3 * (step.0[0].1 + turns * step.0[2].1 + step.0[3].1);
            let off = model / milliseconds - 1.0;
            assert!(
                off.abs() < 0.15,
                "{rows} rows, {ranks} ranks: {model} for {milliseconds}"
            );
        }
    }
}

/// What is known of H200s comes out again.
#[test]
fn h200s_take_what_they_took() {
    let of = |name: &str, batch: f64| {
        let (_, machine) = COST_MODELS.iter().find(|m| m.0 == name).unwrap();
        let work = Workload {
            batch,
            ..work(50_000.0, 1.0)
        };
        1e3 * work.step_seconds(machine).total()
    };
    for (name, batch, took) in [
        ("h200", 128.0, 1.79),
        ("h200", 512.0, 5.85),
        ("h200-224", 128.0, 7.88),
    ] {
        let model = of(name, batch);
        assert!(
            (model / took - 1.0).abs() < 0.02,
            "{name}, {batch}: {model} for {took}"
        );
    }
    let (_, machine) = &COST_MODELS[0];
    let discovery = work(1_281_167.0, 1.0).discovery_seconds(machine).total();
    assert!((discovery - 11.4).abs() < 0.01);
}
