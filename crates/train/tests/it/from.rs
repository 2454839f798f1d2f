//! A run that begins from a model: what is frozen keeps its bits, it goes on to the bit wherever it
//! was stopped, the model is judged before and after, and what does not fit is refused.

use std::sync::OnceLock;

use anchorhood_data::Dataset;
use anchorhood_engine::{Device, Role, Tensors};
use anchorhood_train::{
    Beginning, Event, MethodSpec, Position, Pretrained, RunConfig, Subject, TrainError, Trainer,
    methods,
};

use crate::common::{self, Run, data, each, methods, on_cuda, same_from_any_cut, steps};

/// A run by a method over 40 small pictures: five steps an epoch.
fn tiny(method: &'static MethodSpec) -> RunConfig {
    let mut config = common::tiny_by(method, [40, 10]);
    config.network.width = 4;
    config.training.epochs = 2;
    config.method.predictor_width = 8;
    config.evaluation.every = 1;
    config.evaluation.k = 3;
    config
}

/// A network trained for an epoch by SimCLR.
fn model() -> &'static Pretrained {
    static MODEL: OnceLock<Pretrained> = OnceLock::new();
    MODEL.get_or_init(pretrain)
}

fn pretrain() -> Pretrained {
    let mut config = tiny(&methods::SIMCLR);
    config.training.rounds = 0;
    let (_, checkpoint) = Run::new(&config).whole();
    let mut input = checkpoint.input;
    input.mean = [0.4, 0.5, 0.6]; // not the pictures' own
    Pretrained {
        name: "a model".into(),
        network: checkpoint.config.network.clone(),
        input,
        embed_size: input.size,
        graph: checkpoint.graph(input.size).unwrap(),
        weights: checkpoint.weights,
        fingerprint: "1234".into(),
    }
}

fn fine_tuned(model: &Pretrained, method: &'static MethodSpec) -> (RunConfig, Dataset) {
    let config = model.begin(tiny(method));
    let data = data(&config);
    let config = config.fitted(&data).unwrap();
    model.check(&config).unwrap();
    (config, data)
}

/// A trainer that has begun from the model, as a run does.
fn trainer(device: &Device, model: &Pretrained, config: &RunConfig, data: &Dataset) -> Trainer {
    let mut trainer = common::trainer(device, config, data);
    trainer.begin_from(model).unwrap();
    trainer.begin().unwrap();
    trainer
}

fn values(trainer: &mut Trainer) -> Vec<(String, Role, Vec<f32>)> {
    let network = trainer.network();
    let parameters = network.graph().parameters().to_vec();
    let of = |(i, p): (usize, &anchorhood_engine::Parameter)| {
        let values = network.read(Tensors::Values, i).unwrap();
        (p.name.clone(), p.role, values)
    };
    parameters.iter().enumerate().map(of).collect()
}

/// By every method but those that guess a part of the picture: the first epoch leaves the model's
/// weights as they are, to the bit, and the second does not.
fn frozen_first(device: &Device) {
    let model = model();
    for method in methods().filter(|m| m.kind != methods::MethodKind::Pretext) {
        let (config, data) = fine_tuned(model, method);
        let mut trainer = trainer(device, model, &config, &data);
        let of_model = |name: &str| {
            let tensor = model.weights.iter().find(|t| t.name == name);
            tensor.map(|t| t.values.clone())
        };
        let (mut start, epochs) = (Position::default(), config.training.epochs);
        let begun = values(&mut trainer);
        for (name, _, values) in &begun {
            let same = of_model(name).as_ref() == Some(values);
            assert_eq!(same, !name.starts_with("fc."), "{method}: {name}");
        }
        for frozen in [true, false] {
            let before = values(&mut trainer);
            let end = start.next_epoch(epochs);
            steps(&mut trainer, start, end, epochs);
            for ((name, role, old), (_, _, new)) in before.iter().zip(values(&mut trainer)) {
                let stays = frozen && *role == Role::Weight && !name.starts_with("fc.");
                assert_eq!(*old == new, stays, "{method}: {name}, frozen {frozen}");
            }
            start = end;
        }
    }
}

/// What comes from the model has a learning rate of its own: at next to none it stays, while the
/// rest learns.
#[test]
fn the_model_learns_at_its_own_rate() {
    let model = model();
    let (mut config, data) = fine_tuned(model, &methods::AND);
    config.training.freeze_epochs = 0;
    config.training.from_rate = f64::from(f32::MIN_POSITIVE);
    config.check().unwrap();
    let mut trainer = trainer(&Device::cpu(1), model, &config, &data);
    let before = values(&mut trainer);
    let epochs = config.training.epochs;
    let start = Position::default();
    steps(&mut trainer, start, start.next_epoch(epochs), epochs);
    for ((name, role, old), (_, _, new)) in before.iter().zip(values(&mut trainer)) {
        let stays = *role == Role::Weight && !name.starts_with("fc.");
        assert_eq!(*old == new, stays, "{name}");
    }
}

#[test]
fn frozen_weights_keep_their_bits_on_the_cpu() {
    frozen_first(&Device::cpu(2));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn frozen_weights_keep_their_bits_on_cuda() {
    on_cuda(frozen_first);
}

/// The first step of what was frozen is AdamW's first: every value moves by the learning rate,
/// whichever step of the run it is.
#[test]
fn adamw_counts_the_steps_of_what_was_frozen_from_its_own_first() {
    let model = model();
    let (mut config, data) = fine_tuned(model, &methods::AND);
    config.set("training.optimiser", "adamw").unwrap();
    (config.training.learning_rate, config.training.from_rate) = (0.125, 0.5);
    let mut trainer = trainer(&Device::cpu(1), model, &config, &data);
    let thaw = Position::default().next_epoch(config.training.epochs);
    let rate = config.training.learning_rate * config.training.from_rate;
    steps(&mut trainer, Position::default(), thaw, config.training.epochs);
    let before = values(&mut trainer);
    trainer.advance(thaw, 1).unwrap();
    let mut moved = 0;
    for ((name, role, old), (_, _, new)) in before.iter().zip(values(&mut trainer)) {
        // Norms, which do not decay.
        if *role == Role::Weight && name.contains("bn") {
            for (old, new) in old.iter().zip(new) {
                let step = f64::from((new - old).abs());
                assert!((step / rate - 1.0).abs() < 1e-3, "{name}: {step} for {rate}");
                moved += 1;
            }
        }
    }
    assert!(moved > 100, "{moved} values");
}

/// Cut in the frozen epoch, at its end, and after it.
#[test]
fn taken_up_anywhere_it_ends_in_the_same_bits() {
    let (model, device) = (model(), Device::cpu(1));
    for (method, optimiser) in
        [(&methods::ANCHORHOOD, "sgd"), (&methods::AND, "sgd"), (&methods::AND, "adamw")]
    {
        let (mut config, data) = fine_tuned(model, method);
        config.set("training.optimiser", optimiser).unwrap();
        let begun = || trainer(&device, model, &config, &data);
        // The model is not needed any more.
        let fresh = || common::trainer(&device, &config, &data);
        let cuts = [(0, 0, 2), (0, 1, 0), (0, 1, 3), (1, 0, 4)];
        let saved = same_from_any_cut(&begun, &fresh, 2, &cuts, (1, 1, 3));
        assert_eq!(saved.input.mean, model.input.mean);
    }
}

/// A run by a method that begins from a model, or lacks it.
fn run(model: &Pretrained, method: &'static MethodSpec, brought: Option<Pretrained>) -> Run {
    let (config, data) = fine_tuned(model, method);
    let beginning = Beginning { floors: vec![], model: brought };
    Run { beginning, ..Run::on(&Device::cpu(1), &config, data) }
}

#[test]
fn a_run_judges_the_model_before_and_tells_where_it_began() {
    let model = model();
    for method in [&methods::ANCHORHOOD, &methods::AND] {
        let (events, last) = run(model, method, Some(model.clone())).whole();
        let by_labels: Vec<Subject> = each!(events, Event::Evaluated(e) => e.subject).collect();
        let without: Vec<Subject> = each!(events, Event::LabelFree(e) => e.subject).collect();
        let expected = [Subject::RawPixels, Subject::Before];
        assert_eq!((&by_labels[..2], &without[..2]), (&expected[..], &expected[..]));
        let Some(Event::RunStarted(started)) = events.first() else { panic!("{events:?}") };
        assert_eq!(started.from.as_deref(), Some("a model"));
        assert_eq!(last.input.mean, model.input.mean);
    }
}

#[test]
fn another_model_or_none_is_refused() {
    let model = model();
    let begun = |brought| run(model, &methods::SIMCLR, brought).go_on().unwrap_err();
    assert!(matches!(begun(None), TrainError::NoModel { .. }));
    let changed = Pretrained { fingerprint: "5678".into(), ..model.clone() };
    let said = begun(Some(changed)).to_string();
    assert!(said.starts_with("training.from_fingerprint: 1234"), "{said}");
    let mut cut = model.clone();
    cut.weights.retain(|t| t.name != "layer4.1.bn2.bias");
    let said = begun(Some(cut)).to_string();
    assert!(said.contains("no layer4.1.bn2.bias"), "{said}");
}
