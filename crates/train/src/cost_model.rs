//! What does a step cost on so many ranks, what does discovery, and how much memory does a rank need? A small model, each of whose numbers was
//! measured somewhere (`docs/scale.md` says where, and how far the model is from measurements).
//!
//! Ranks share the rows of the memory, and each step's batch. With b pictures a rank, V views, P ranks, so Q = b·V·P queries, N rows of D
//! values: every rank compares all Q queries with its N/P rows, and so looks at b·V·N·D values, whatever the number of ranks: sharding divides
//! memory, not work.

/// Bytes of a number.
const F32: f64 = 4.0;
/// Bytes of a picture's number.
const WORD: f64 = 4.0;
/// Bytes of what a rank says of a query: its sum over all rows and over the positives.
const SUMS: f64 = 16.0;
/// Exchanges of a step.
const EXCHANGES: f64 = 9.0;

/// What a rank's device and the links between ranks take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineCosts {
    /// What it is, in words.
    pub name: &'static str,
    /// Seconds of a step whatever its size.
    pub step: f64,
    /// Seconds of the network, forwards and backwards, for each view of a picture.
    pub view: f64,
    /// Seconds of the loss for each query, row and value of a row.
    pub loss: f64,
    /// Seconds of discovery for each pair of rows and value of a row.
    pub scan: f64,
    /// Bytes a second between ranks.
    pub link: f64,
    /// Seconds that an exchange takes for each doubling of the ranks, however little is exchanged.
    pub latency: f64,
    /// Bytes of memory that a rank has.
    pub memory: f64,
    /// Bytes that a rank needs anyway: the program, the network, its activations.
    pub base: f64,
}

/// An NVIDIA H200 that trains a ResNet18 of width 64 in bf16 (`docs/benchmarks.md`, 2026-11-15 and 16): steps of batch 128 and 512 took 1.79
/// and 5.85 ms, the loss 0.24 ms for 10⁶ rows of 128 and a batch of 128, discovery 11.4 s over 1,281,167 rows. Links were not measured: there
/// was one GPU. Its link and latency are what InfiniBand of 400 Gbit/s is sold as.
const H200: MachineCosts = MachineCosts {
    name: "an H200 each (pictures of 32×32)",
    step: 0.43e-3,
    view: 10.6e-6,
    loss: 0.24e-3 / (1e6 * 128.0 * 128.0),
    scan: 11.4 / (1_281_167.0 * 1_281_167.0 * 128.0),
    link: 50e9,
    latency: 5e-6,
    memory: 141e9,
    base: 4e9,
};

/// The same with pictures of 224×224: a step of 128 took 7.88 ms.
const H200_224: MachineCosts = MachineCosts {
    name: "an H200 each (pictures of 224×224)",
    view: 58e-6,
    ..H200
};

/// A core of an AMD EPYC (Zen 4, AVX-512) that trains a ResNet18 of width 64: a step and its loss by `docs/scale.md` (2026-11-17), network and
/// discovery by `docs/benchmarks.md` (2026-11-15). Link and latency were not measured: they are those that an Ethernet of 10 Gbit/s is sold as.
const CPU_CORE: MachineCosts = MachineCosts {
    name: "a core each (pictures of 32×32)",
    step: 9.8e-6,
    view: 18.2e-3,
    loss: 4.93e-11,
    scan: 1.43e-11,
    link: 1.25e9,
    latency: 50e-6,
    memory: 12e9,
    base: 0.45e9,
};

/// The machines whose terms are known, by name.
pub const COST_MODELS: [(&str, MachineCosts); 3] = [
    ("h200", H200),
    ("h200-224", H200_224),
    ("cpu-core", CPU_CORE),
];

/// What is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// N: pictures, and rows of the memory.
    pub pictures: f64,
    /// P: ranks.
    pub ranks: f64,
    /// b: pictures in a rank's part of a batch.
    pub batch: f64,
    /// V: views of each.
    pub views: f64,
    /// D: values of a row.
    pub dim: f64,
    /// Neighbours of an anchor.
    pub neighbours: f64,
    /// Weights of the network.
    pub weights: f64,
    /// Rows that stand for all in the loss; all of them where nothing is said.
    pub loss_rows: Option<f64>,
}

/// Something that has parts: seconds, or bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts(pub Vec<(&'static str, f64)>);

impl Parts {
    /// Of all parts together.
    pub fn total(&self) -> f64 {
        self.0.iter().map(|p| p.1).sum()
    }

    /// The largest part's name; nothing where there is none.
    pub fn dominant(&self) -> &'static str {
        let some = self.0.iter().filter(|p| p.1 > 0.0);
        let largest = some.max_by(|a, b| a.1.total_cmp(&b.1));
        largest.map_or("nothing", |p| p.0)
    }
}

impl Workload {
    fn queries(&self) -> f64 {
        self.batch * self.views * self.ranks
    }

    /// The share of something whole that comes from others.
    fn of_others(&self) -> f64 {
        (self.ranks - 1.0) / self.ranks
    }

    /// Bytes that a rank receives in a step.
    pub fn step_bytes(&self) -> Parts {
        let (rows, others) = (self.queries() * self.dim * F32, self.of_others());
        Parts(vec![
            ("features", others * (rows + rows / self.views)), // for the loss, and for the memory
            // How many an item has and which, summed over the ranks.
            (
                "positives",
                others * 2.0 * self.batch * self.ranks * (self.neighbours + 2.0) * WORD,
            ),
            (
                "sums of the softmax",
                self.queries() * SUMS * (self.ranks - 1.0),
            ),
            ("gradients of features", others * rows),
            ("gradients of weights", others * 2.0 * self.weights * F32),
        ])
    }

    /// Seconds of a step.
    pub fn step_seconds(&self, machine: &MachineCosts) -> Parts {
        let rows = self.loss_rows.unwrap_or(self.pictures).min(self.pictures);
        let pairs = self.queries() * rows / self.ranks;
        let exchanges = EXCHANGES * machine.latency * self.ranks.log2();
        Parts(vec![
            ("launching", machine.step),
            ("network", self.batch * self.views * machine.view),
            ("loss", pairs * self.dim * machine.loss),
            (
                "exchange",
                self.step_bytes().total() / machine.link + exchanges,
            ),
        ])
    }

    /// Seconds of an exact discovery before a round.
    pub fn discovery_seconds(&self, machine: &MachineCosts) -> Parts {
        let pairs = self.pictures / self.ranks * self.pictures;
        let bytes = self.pictures * self.dim * F32 * self.of_others();
        Parts(vec![
            ("comparing", pairs * self.dim * machine.scan),
            ("passing parts round", bytes / machine.link),
        ])
    }

    /// Bytes of memory that a rank needs.
    pub fn memory(&self, machine: &MachineCosts) -> Parts {
        let (n, k) = (self.pictures / self.ranks, self.neighbours);
        let part = n * self.dim * F32;
        let several = if self.ranks > 1.0 { 1.0 } else { 0.0 };
        Parts(vec![
            ("its part of the memory bank", part),
            // Two parts, where there are others; neighbourhoods are found from a copy of the rows.
            ("discovery", part * 2.0 * several),
            // Neighbours and entropies, and positives with where each picture's begin.
            (
                "neighbourhoods",
                n * (WORD * k + 5.0 + WORD * (k + 1.0) + WORD),
            ),
            // On the host and on the device, or of two epochs.
            ("order of an epoch", 2.0 * n * WORD),
            // All of it for a moment, whatever the number of ranks.
            ("drawing that order", self.pictures * WORD * several),
            ("network and program", machine.base),
        ])
    }

    /// The number of pictures from which on the loss takes longer than the network.
    pub fn pictures_where_loss_dominates(&self, machine: &MachineCosts) -> f64 {
        machine.view / (self.dim * machine.loss)
    }

    /// The number of ranks, a power of two, from which on exchanging takes longer than network and loss together; nothing up to 2^20.
    pub fn ranks_where_exchange_dominates(&self, machine: &MachineCosts) -> Option<f64> {
        let of = |ranks: f64| {
            let step = Workload { ranks, ..*self }.step_seconds(machine);
            step.0[3].1 > step.0[1].1 + step.0[2].1
        };
        (1..=20).map(|i| f64::powi(2.0, i)).find(|ranks| of(*ranks))
    }
}
