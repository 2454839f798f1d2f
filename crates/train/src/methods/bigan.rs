//! BiGAN: *Adversarial Feature Learning* (Donahue, Krähenbühl & Darrell, ICLR 2017).
//!
//! A generator G makes pictures of random latents z, an encoder E says of pictures which latents
//! they might have been made of, and a discriminator D is to tell pairs of a real picture and its
//! guessed latents from pairs of a made picture and its own. Where D can no longer tell them, E is
//! the inverse of G, and had to see what there is in pictures. With D's probability that a pair is
//! real, z uniform in ±1:
//!
//! ```text
//! D      ℓ = − ½ [ ln D(x, E(x)) + ln(1 − D(G(z), z)) ]
//! E, G   ℓ = − ½ [ ln(1 − D(x, E(x))) + ln D(G(z), z) ]
//! ```
//!
//! The second is the first with labels changed: its gradient does not vanish where D is right.
//!
//! D's probability is the sigmoid of the difference of two logits, that is, their softmax: the loss
//! is a cross-entropy of two classes, finite where D is sure.
//!
//! All three move at the end of a step (the paper: at once, rather than in turns). What E's network
//! has below the linear layer that says z (`latent`) is judged.
//!
//! Recipe: Adam at 2e-4 with betas 0.5 and 0.999, decay 2.5e-5, batch 128 (the paper); leaky ReLU
//! of 0.2 and strides in D, batch norm in both but at their ends (DCGAN, Radford et al. 2016).
//!
//! Adapted for 32×32: G begins at 4×4 and doubles, each time by nearest neighbours and a 3×3
//! convolution, which leaves no chequers as transposed ones do (Odena et al. 2016). D leaves out
//! half of its hidden values (as ALI does on CIFAR-10, Dumoulin et al. 2017), and normalises
//! pictures and latents, real ones and made ones by themselves: without that it told them by their
//! means and deviations alone, and nobody learnt from it. 128 latents (`--projector-features`) in
//! place of 200, cosine in place of an exponential decay to a hundredth, crops of 0.67 to 1,
//! mirrored.

use anchorhood_engine::{
    Activation, Batch, Buffer, ConvSpec, Device, Error, Graph, Input, Network, NetworkOptions,
    Result, Shape, Stream,
};

use crate::config::{Preset, RunConfig};
use crate::methods::classifier::Classifier;
use crate::methods::recipes::pretext;
use crate::methods::{Method, MethodSpec, PretextFigure, Setup, StateDict};

/// Find the latents that a generator could have made an image of.
pub static BIGAN: MethodSpec = MethodSpec {
    name: "bigan",
    summary: "Find the latents that a generator could have made an image of",
    reference: "Donahue, Krähenbühl & Darrell, ICLR 2017",
    reads: &["projector_width", "projector_features"],
    multi_process: Err("every process would make the same pictures, of the same random numbers"),
    recipe,
    memory_bytes: |setup, config| {
        let m = &config.method;
        Ok((BiGan::memory_bytes(setup, m.projector_features, m.projector_width)?, 0))
    },
    build: |setup, config, _| {
        let m = &config.method;
        Ok(Box::new(BiGan::new(setup, m.projector_features, m.projector_width)?))
    },
    ..MethodSpec::DEFAULT
};

/// As GANs are trained; most of an image, so that there is less to be made.
fn recipe(c: &mut RunConfig, preset: Preset) {
    pretext(c);
    let (t, m) = (&mut c.training, &mut c.method);
    (t.learning_rate, t.betas, t.weight_decay) = (0.0002, (0.5, 0.999), 2.5e-5);
    c.augmentation.crop_scale = (0.67, 1.0);
    m.projector_width = 1024;
    if preset == Preset::Quick {
        // Few steps.
        (t.learning_rate, m.projector_width) = (0.0005, 256);
    }
}

/// The passes of the discriminator.
const REAL: usize = 0;
const MADE: usize = 1;
/// What a side of the generator's first maps may be.
const FIRST_SIDE: usize = 4;
const MOST_FIRST_SIDE: usize = 16;
/// The share of the discriminator's hidden values that is left out.
const DROPPED: f32 = 0.5;
const LEAKY: Activation = Activation::LeakyRelu(0.2);

/// The three networks, of which the discriminator is three again: what it makes of pictures and of
/// latents, which are added up (as by a linear layer over both side by side), and how real a pair
/// then looks.
pub struct BiGan {
    seed: u64,
    encoder: Network,
    latent: Network,
    generator: Network,
    of_pictures: Network,
    of_latents: Network,
    pairs: Classifier,
    /// What pictures are made of, and what the discriminator has of each pair, the real ones first.
    latents: Buffer,
    sums: Buffer,
    /// The pairs' classes changed, and which pairs are real and which are made.
    changed: Buffer<u32>,
    rows: [Buffer<u32>; 2],
}

/// How large networks are.
#[derive(Clone, Copy)]
struct Sizes {
    pictures: Shape,
    latents: usize,
    hidden: usize,
}

impl BiGan {
    /// Bytes of the networks.
    pub fn memory_bytes(setup: &Setup, latents: usize, hidden: usize) -> Result<usize> {
        let sizes = Sizes::new(setup, latents, hidden);
        let pairs = Setup { batch: 2 * setup.batch, ..*setup };
        let encoder = setup.options(setup.batch).memory_bytes(setup.graph)?;
        let mut bytes = encoder + Classifier::memory_bytes(&pairs, &sizes.pairs()?)?;
        for (graph, options) in sizes.networks(setup)? {
            bytes += options.memory_bytes(&graph)?;
        }
        Ok(bytes)
    }

    /// At the beginning of a run, with so many latents, and so many values of the discriminator's
    /// hidden layers; maps of 4×4 have a quarter as many channels, larger ones fewer.
    pub fn new(setup: Setup, latents: usize, hidden: usize) -> Result<Self> {
        let (device, batch) = (setup.device, setup.batch);
        let encoder = setup.encoder(&setup.options(batch))?;
        let sizes = Sizes::new(&setup, latents, hidden);
        let [latent, generator, of_pictures, of_latents] = sizes.networks(&setup)?;
        let network = |(graph, options): (Graph, NetworkOptions), number: u64| {
            setup.network(&graph, &options, number)
        };
        let double = Setup { batch: 2 * batch, ..setup };
        let mut pairs = Classifier::new(&double, ("pairs", 5), &sizes.pairs()?, 2)?;
        let classes = |real: u32| {
            let classes: Vec<u32> = (0..2 * batch as u32)
                .map(|row| if (row as usize) < batch { real } else { 1 - real })
                .collect();
            device.upload_indices(&classes)?.below(2)
        };
        *pairs.labels() = classes(1)?;
        let rows = |pass: usize| {
            let first = (pass * batch) as u32;
            let rows: Vec<u32> = (first..first + batch as u32).collect();
            device.upload_indices(&rows)
        };
        Ok(BiGan {
            seed: setup.seed,
            latent: network(latent, 1)?,
            generator: network(generator, 2)?,
            of_pictures: network(of_pictures, 3)?,
            of_latents: network(of_latents, 4)?,
            pairs,
            latents: device.zeros(batch * latents)?,
            sums: device.zeros(2 * batch * hidden)?,
            changed: classes(0)?,
            rows: [rows(REAL)?, rows(MADE)?],
            encoder,
        })
    }

    /// Latents are drawn and guessed, and pictures made.
    fn make(&mut self, stream: &mut Stream, pictures: Input) -> Result<()> {
        stream.uniform(self.seed, &mut self.latents)?;
        self.encoder.forward(stream, 0, pictures)?;
        let seen = self.encoder.output_of(0);
        self.latent.forward(stream, 0, seen)?;
        let drawn = Input::rows(&self.latents);
        self.generator.forward(stream, 0, drawn)
    }

    /// How far the discriminator is from being wrong, and what that says to who made and guessed.
    fn fool(&mut self, stream: &mut Stream, pictures: Input) -> Result<()> {
        self.look(stream, pictures)?;
        let pairs = Input::rows(&self.sums);
        self.pairs.mislead(stream, pairs, &self.changed)?;
        self.back(stream, &[MADE], &[REAL])?;
        self.hand_back(stream)
    }

    /// How far it is from being right, and what that says to itself. Its way back is paved with
    /// what it saw, and taken once: it looks again.
    fn discriminate(&mut self, stream: &mut Stream, pictures: Input) -> Result<()> {
        self.look(stream, pictures)?;
        self.pairs.learn(stream, Input::rows(&self.sums))?;
        self.back(stream, &[REAL, MADE], &[REAL, MADE])
    }

    /// All networks move.
    fn learn(&mut self, stream: &mut Stream) -> Result<()> {
        self.generator.backward(stream, 0)?;
        self.latent.backward(stream, 0)?;
        let (_, gradient) = self.encoder.output_and_gradient();
        stream.copy(self.latent.input_gradient()?, gradient)?;
        self.encoder.backward(stream, 0)?;
        let mut all = self.networks().into_iter().rev();
        all.try_for_each(|(_, network)| network.update(stream))
    }

    /// What the discriminator has of all pairs.
    fn look(&mut self, stream: &mut Stream, pictures: Input) -> Result<()> {
        let made = self.generator.output_of(0);
        self.of_pictures.forward(stream, REAL, pictures)?;
        self.of_pictures.forward(stream, MADE, made)?;
        let guessed = self.latent.output_of(0);
        self.of_latents.forward(stream, REAL, guessed)?;
        let drawn = Input::rows(&self.latents);
        self.of_latents.forward(stream, MADE, drawn)?;
        stream.copy(self.of_pictures.output(), &mut self.sums)?;
        stream.add(self.of_latents.output(), &mut self.sums)
    }

    /// Gradients of some passes through what the discriminator makes of pictures and of latents.
    fn back(&mut self, stream: &mut Stream, pictures: &[usize], latents: &[usize]) -> Result<()> {
        for (network, passes) in
            [(&mut self.of_pictures, pictures), (&mut self.of_latents, latents)]
        {
            let (_, gradient) = network.output_and_gradient();
            stream.copy(self.pairs.input_gradient()?, gradient)?;
            for pass in passes {
                network.backward(stream, *pass)?;
            }
        }
        Ok(())
    }

    /// The gradients of a made picture and of guessed latents go to who made and guessed them.
    fn hand_back(&mut self, stream: &mut Stream) -> Result<()> {
        for (judge, maker, pass) in [
            (&self.of_pictures, &mut self.generator, MADE),
            (&self.of_latents, &mut self.latent, REAL),
        ] {
            let (dim, given) = (maker.features(), judge.input_gradient()?);
            let (_, gradient) = maker.output_and_gradient();
            stream.gather_rows(given, dim, &self.rows[pass], gradient)?;
        }
        Ok(())
    }
}

impl Sizes {
    fn new(setup: &Setup, latents: usize, hidden: usize) -> Self {
        Sizes { pictures: setup.picture(), latents, hidden }
    }

    /// What says latents, the generator, and what the discriminator makes of pictures and of
    /// latents, with how each is built.
    fn networks(&self, setup: &Setup) -> Result<[(Graph, NetworkOptions); 4]> {
        let plain = setup.options(setup.batch);
        let through = plain.clone().with_input_gradient();
        let both = through.clone().with_passes(2);
        Ok([
            (self.latent(setup.features())?, through),
            (self.generator()?, plain),
            (self.of_pictures()?, both.clone()),
            (self.of_latents()?, both),
        ])
    }

    /// The side of the smallest maps, and how often they are doubled up to the size of a picture.
    fn doublings(&self) -> Result<(usize, usize)> {
        let (mut side, mut times) = (self.pictures.height, 0);
        while side.is_multiple_of(2) && side > FIRST_SIDE {
            (side, times) = (side / 2, times + 1);
        }
        if side <= MOST_FIRST_SIDE {
            Ok((side, times))
        } else {
            Err(Error::Plan(format!(
                "pictures of {} pixels are not made by doubling; sizes such as 32, 64, 96 and 224 \
                 are",
                self.pictures.height
            )))
        }
    }

    /// Channels of maps that are so many doublings away from the smallest.
    fn channels(&self, doublings: usize) -> usize {
        ((self.hidden / 4) >> doublings).max(8)
    }

    /// The linear layer that says the latents of a picture.
    fn latent(&self, features: usize) -> Result<Graph> {
        let mut g = Graph::new();
        let x = g.input(1, 1, features);
        let x = g.linear("0", x, self.latents, true)?;
        g.output(x);
        Ok(g)
    }

    fn generator(&self) -> Result<Graph> {
        let (side, times) = self.doublings()?;
        let mut g = Graph::new();
        let x = g.input(1, 1, self.latents);
        // A kernel that reaches over one place from all sides: each of the maps' places sees it by
        // weights of its own.
        let spread = ConvSpec::square(self.channels(0), side, 1, side - 1);
        let mut x = g.conv_norm("spread", "spread_norm", x, spread, true, None)?;
        for n in 1..=times {
            x = g.upsample(&format!("up{n}"), x)?;
            if n < times {
                let spec = ConvSpec::square(self.channels(n), 3, 1, 1);
                let [conv, norm] = ["conv", "norm"].map(|name| format!("{name}{n}"));
                x = g.conv_norm(&conv, &norm, x, spec, true, None)?;
            }
        }
        let colours = self.pictures.channels;
        let x = g.conv("pixels", x, ConvSpec::square(colours, 3, 1, 1).with_bias())?;
        let x = g.activation("tanh", x, Activation::Tanh)?;
        g.output(x);
        Ok(g)
    }

    /// The generator's way backwards, up to a vector.
    fn of_pictures(&self) -> Result<Graph> {
        let (side, times) = self.doublings()?;
        let mut g = Graph::new();
        let p = self.pictures;
        let x = g.input(p.height, p.width, p.channels);
        let mut x = g.batch_norm("norm", x)?;
        for n in (0..times).rev() {
            let spec = ConvSpec::square(self.channels(n), 4, 2, 1);
            let [conv, norm, leaky] = ["conv", "norm", "leaky"].map(|name| format!("{name}{n}"));
            x = if n + 1 == times {
                g.conv(&conv, x, spec.with_bias())?
            } else {
                g.conv_norm(&conv, &norm, x, spec, false, None)?
            };
            x = g.activation(&leaky, x, LEAKY)?;
        }
        let whole = ConvSpec::square(self.hidden, side, 1, 0).with_bias();
        let x = g.conv("whole", x, whole)?;
        g.output(x);
        Ok(g)
    }

    fn of_latents(&self) -> Result<Graph> {
        let mut g = Graph::new();
        let x = g.input(1, 1, self.latents);
        let x = g.batch_norm("0", x)?;
        let x = g.linear("1", x, self.hidden, true)?;
        let x = g.activation("2", x, LEAKY)?;
        let x = g.linear("3", x, self.hidden, true)?;
        g.output(x);
        Ok(g)
    }

    fn pairs(&self) -> Result<Graph> {
        let mut g = Graph::new();
        let x = g.input(1, 1, self.hidden);
        let x = g.activation("0", x, LEAKY)?;
        let x = g.dropout("1", x, DROPPED)?;
        let x = g.linear("2", x, self.hidden, true)?;
        let x = g.activation("3", x, LEAKY)?;
        let x = g.dropout("4", x, DROPPED)?;
        let x = g.linear("5", x, 2, true)?;
        g.output(x);
        Ok(g)
    }
}

impl Method for BiGan {
    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.make(stream, batch.view(0))?;
        self.fool(stream, batch.view(0))?;
        self.discriminate(stream, batch.view(0))?;
        self.learn(stream)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        vec![
            ("", &mut self.encoder),
            ("latent", &mut self.latent),
            ("generator", &mut self.generator),
            ("discriminator.pictures", &mut self.of_pictures),
            ("discriminator.latents", &mut self.of_latents),
            ("discriminator.pairs", self.pairs.network()),
        ]
    }

    fn pretext(&mut self, device: &Device) -> Result<Vec<PretextFigure>> {
        Ok(vec![self.pairs.figure(device)?])
    }

    fn state(&self, device: &Device) -> Result<StateDict> {
        let mut state = StateDict::default();
        self.pairs.keep(device, &mut state)?;
        Ok(state)
    }

    fn restore(&mut self, device: &Device, state: &StateDict) -> Result<()> {
        self.pairs.restore(device, state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_engine::{Optimiser, Role, Tensors};

    const BATCH: usize = 6;

    fn encoder() -> Graph {
        let mut g = Graph::new();
        let x = g.input(8, 8, 3);
        let spec = ConvSpec::square(4, 3, 2, 1);
        let x = g.conv_norm("conv", "norm", x, spec, true, None).unwrap();
        let x = g.global_avg_pool("pool", x).unwrap();
        g.output(x);
        g
    }

    fn bigan(device: &Device, graph: &Graph) -> Result<BiGan> {
        let setup = Setup {
            device,
            graph,
            pictures: BATCH,
            batch: BATCH,
            mean: [0.5; 3],
            std: [0.25; 3],
            sync_norm: false,
            optimiser: Optimiser::adam_w(),
            seed: 3,
        };
        BiGan::new(setup, 5, 32)
    }

    /// The loss of who fools (the first networks) or of who is to be fooled (the others).
    fn loss(of: &mut BiGan, stream: &mut Stream, pictures: &Buffer, part: usize) -> f64 {
        let real = Input::rows(pictures);
        of.make(stream, real.clone()).unwrap();
        if part < 3 {
            of.fool(stream, real).unwrap()
        } else {
            of.discriminate(stream, real).unwrap()
        }
        let device = Device::cpu(1);
        let rows = device.download(of.pairs.losses()).unwrap();
        rows.iter().map(|l| f64::from(*l)).sum::<f64>() / rows.len() as f64
    }

    /// Every network has the gradient of its own loss, by finite differences along it.
    #[test]
    fn each_network_follows_its_own_loss() {
        let (device, graph) = (Device::cpu(1), encoder());
        let mut of = bigan(&device, &graph).unwrap();
        let mut pixels = vec![0.0; BATCH * 8 * 8 * 3];
        let draws = anchorhood_storage::random::Draws::new(
            1,
            anchorhood_storage::random::Stream::Test,
            0,
            0,
        );
        draws.fill_symmetric(&mut pixels, 1.5);
        let pictures = device.upload(&pixels).unwrap();
        let mut stream = device.stream().unwrap();
        stream.set_step(7, 0.0).unwrap();
        for part in 0..6 {
            let real = Input::rows(&pictures);
            of.make(&mut stream, real.clone()).unwrap();
            of.fool(&mut stream, real.clone()).unwrap();
            of.discriminate(&mut stream, real).unwrap();
            of.learn(&mut stream).unwrap();
            let networks = of.networks();
            let (name, network) = &networks[part];
            let parameters = network.graph().parameters().iter().enumerate();
            let trained = parameters.filter(|(_, p)| p.role == Role::Weight);
            let read = |(i, _)| {
                let [w, g] = [Tensors::Values, Tensors::Gradients].map(|t| network.read(t, i));
                (i, w.unwrap(), g.unwrap())
            };
            let all: Vec<(usize, Vec<f32>, Vec<f32>)> = trained.map(read).collect();
            let gradients = all.iter().flat_map(|(_, _, g)| g);
            let square: f64 = gradients.map(|g| f64::from(*g).powi(2)).sum();
            let name = name.to_string();
            let (length, reach) = (square.sqrt(), 5e-3);
            let [up, down, _] = [1.0, -1.0, 0.0].map(|sign| {
                let (_, network) = of.networks().swap_remove(part);
                let step = (sign * reach / length) as f32;
                for (i, values, gradient) in &all {
                    let moved = values.iter().zip(gradient).map(|(w, g)| w + step * g);
                    let moved: Vec<f32> = moved.collect();
                    network.write(Tensors::Values, *i, &moved).unwrap();
                }
                loss(&mut of, &mut stream, &pictures, part)
            });
            let slope = (up - down) / (2.0 * reach * length);
            println!("{name}: {slope}");
            assert!((slope - 1.0).abs() < 0.05, "{name}: {slope}");
        }
    }

    #[test]
    fn pictures_that_cannot_be_made_by_doubling_are_refused() {
        let of =
            |side: usize| Sizes { pictures: Shape::new(side, side, 3), latents: 4, hidden: 32 };
        for (side, first, times) in [(4, 4, 0), (8, 4, 1), (32, 4, 3), (96, 3, 5), (224, 7, 5)] {
            assert_eq!(of(side).doublings().unwrap(), (first, times));
            let made = of(side).generator().unwrap();
            assert_eq!(made.shape(made.output_node()), of(side).pictures);
            let seen = of(side).of_pictures().unwrap();
            assert_eq!(seen.shape(seen.output_node()), Shape::new(1, 1, 32));
        }
        let refused = of(50).generator().unwrap_err().to_string();
        assert!(refused.contains("50 pixels"), "{refused}");
    }
}
