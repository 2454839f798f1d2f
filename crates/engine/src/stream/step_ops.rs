//! What steps are made of: losses over rows, and what lies around them. [`Stream`] checks what it
//! is given; a device does it.

use super::Stream;
use crate::backend::either;
use crate::similarity::{DevicePositives, check_temperature, rows};
use crate::{Buffer, Error, Result, RowSample};

/// A loss of one's own: is given values, and writes losses and the gradient of their mean.
pub type HostLoss<'a> = &'a mut dyn FnMut(&[f32], &mut [f32], &mut [f32]) -> Result<()>;

/// Where a loss goes.
pub struct Loss<'a> {
    /// Takes (`=`) a loss for each row.
    pub rows: &'a mut Buffer,
    /// Takes (`=`) the gradient of `weight` · (mean of the rows' losses).
    pub gradient: &'a mut Buffer,
    /// The loss's share of the step's.
    pub weight: f32,
}

/// The softmax of each query over all keys.
#[derive(Clone, Copy)]
pub struct SoftmaxLoss<'a> {
    /// Queries, rows of `dim`.
    pub queries: &'a Buffer,
    /// Keys, rows of `dim`, held constant.
    pub keys: &'a Buffer,
    /// Length of a row.
    pub dim: usize,
    /// Divides the similarities.
    pub temperature: f32,
    /// Which keys count as the same thing as a query.
    pub positives: &'a DevicePositives,
    /// Query q has the positives of row `items[q mod len]`; without, those of row q.
    pub items: Option<&'a Buffer<u32>>,
}

/// Views of pictures, of which the first is the whole and the others are its parts.
///
/// With φ the row of a view, S_i the sum over the parts of picture i, and j the next picture of the
/// batch (after the last one, the first):
///
/// ```text
/// ℓ_i = |S_i − φ_i|² + max(0, margin − |S_i − φ_j|²)
/// ```
#[derive(Clone, Copy)]
pub struct Counting<'a> {
    /// Rows of `dim`: the wholes of all pictures, then every picture's first part, and so on.
    pub rows: &'a Buffer,
    /// The whole and its parts.
    pub views: usize,
    /// Length of a row.
    pub dim: usize,
    /// The squared distance from another picture beyond which nothing is asked.
    pub margin: f32,
}

/// Logits of rows, and the class of each: that of row b is `labels[items[b]]`.
#[derive(Clone, Copy)]
pub struct Labelled<'a> {
    pub(crate) logits: &'a Buffer,
    pub(crate) classes: usize,
    pub(crate) labels: &'a Buffer<u32>,
    pub(crate) items: &'a Buffer<u32>,
    /// Of each class, by which losses and gradients of its rows are multiplied.
    pub(crate) weights: Option<&'a Buffer>,
}

/// Rows of `dim`.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    pub(crate) values: &'a Buffer,
    pub(crate) dim: usize,
}

/// Rows of `dim`, view 0 of all pictures, then view 1, and so on.
#[derive(Clone, Copy)]
pub struct Views<'a> {
    pub(crate) rows: &'a Buffer,
    pub(crate) views: usize,
    pub(crate) dim: usize,
}

/// Tiles cut out of square pictures, by which a puzzle is set: which of some arrangements (classes)
/// are these the tiles of?
#[derive(Clone, Copy)]
pub struct Tiles<'a> {
    /// The pictures, a row each.
    pub pixels: &'a Buffer,
    /// Pixels of a picture's side, and of an enlarged tile's.
    pub size: usize,
    /// Channels of a picture.
    pub channels: usize,
    /// For each class in turn, where each of its tiles begins: row · (room + 1) + column, each up
    /// to [`Tiles::room`].
    pub places: &'a Buffer<u32>,
    /// Tiles of a puzzle.
    pub tiles: usize,
    /// Pixels of a tile's side.
    pub side: usize,
    /// How far down and to the right of its place a tile may lie.
    pub jitter: usize,
    /// Whether each tile is normalised, channel by channel.
    pub normalise: bool,
    /// Decides the draws.
    pub seed: u64,
}

impl Tiles<'_> {
    /// The last row and column that a tile may have its place at.
    pub fn room(&self) -> usize {
        self.size - self.side - self.jitter
    }

    /// That tiles fit into pictures, which have a label each and room for all their tiles.
    fn check(&self, labels: &Buffer<u32>, to: &Buffer) -> Result<()> {
        let whole = self.tiles > 0
            && self.side > 0
            && (1..=256).contains(&self.channels)
            && self.side + self.jitter <= self.size
            && self.places.len().is_multiple_of(self.tiles);
        Error::refuse(!whole || self.places.is_empty(), || {
            format!(
                "{} tiles of {} pixels out of pictures of {}, {} places",
                self.tiles,
                self.side,
                self.size,
                self.places.len()
            )
        })?;
        let room = self.room() + 1;
        self.places.check_below("places of tiles", room * room)?;
        let one = self.size * self.size * self.channels;
        let pictures = rows("pictures", self.pixels.len(), one)?;
        Error::check_length("a label for each picture", pictures, labels.len())?;
        Error::check_length("enlarged tiles", pictures * self.tiles * one, to.len())?;
        let classes = self.places.len() / self.tiles;
        Error::refuse(labels.limit() < classes, || {
            format!("{classes} classes for labels below {}", labels.limit())
        })
    }
}

impl Stream {
    /// Softmax of each query over all keys, and the loss −log Σ p over its positives, or the mean
    /// of their −log p ([`Positives::counting_each`](crate::Positives::counting_each)). The matrix
    /// of all similarities never exists.
    ///
    /// Where several processes take the step, the mean of this and of every other loss is that over
    /// the queries of all of them, and keys that are [sharded](crate::Shard) are the keys of all of
    /// them.
    pub fn softmax_loss(&mut self, of: &SoftmaxLoss, loss: Loss) -> Result<()> {
        self.check_softmax(of, &loss)?;
        let loss = self.shared(loss);
        either!(&mut self.backend, stream => stream.softmax(of, None, loss))
    }

    /// The same estimated from the positives of the batch and a sample of the other keys, whose
    /// weight makes up for those that are left out: a step's work is that of so many keys, whatever
    /// their number.
    pub fn sampled_softmax_loss(
        &mut self,
        of: &SoftmaxLoss,
        sample: RowSample,
        loss: Loss,
    ) -> Result<()> {
        self.check_softmax(of, &loss)?;
        Error::refuse(sample.rows == 0, || "a loss over a sample of no keys".into())?;
        let loss = self.shared(loss);
        either!(&mut self.backend, stream => stream.softmax(of, Some(sample), loss))
    }

    /// The softmax between views: queries and keys are those of so many views of the same pictures,
    /// view after view, and the queries of a view see the keys of the next one alone, those of the
    /// last the first one's. Each picture has its positives among the keys of a view.
    pub fn softmax_between_views(
        &mut self,
        of: &SoftmaxLoss,
        views: usize,
        loss: Loss,
    ) -> Result<()> {
        check_temperature(of.temperature)?;
        let count = rows("queries", of.queries.len(), of.dim)?;
        loss.check(count, of.queries)?;
        Error::check_length("keys, as many as queries", of.queries.len(), of.keys.len())?;
        let positives = of.positives;
        for pictures in [positives.len(), positives.keys()] {
            Error::check_length("queries of all views", views * pictures, count)?;
        }
        Error::refuse(views == 0 || positives.is_empty(), || "a softmax between no views".into())?;
        let whole = of.keys.shard().is_none() && positives.here() == (0..positives.len());
        if of.items.is_some() || !whole {
            let why = "views are stacked as the pictures of one process's batch are";
            return Err(Error::Plan(why.into()));
        }
        let loss = self.shared(loss);
        either!(&mut self.backend, stream => stream.softmax_between_views(of, views, loss))
    }

    fn check_softmax(&self, of: &SoftmaxLoss, loss: &Loss) -> Result<()> {
        check_temperature(of.temperature)?;
        let keys = match of.keys.shard() {
            None => of.keys.len(),
            Some(_) => self.rows_of("keys", of.keys, of.dim)? * of.dim,
        };
        Error::check_length(
            "keys, as many as the positives are among",
            of.positives.keys() * of.dim,
            keys,
        )?;
        let count = rows("queries", of.queries.len(), of.dim)?;
        loss.check(count, of.queries)?;
        self.check_part(of)?;
        match of.items {
            None => Error::check_length("positives", count, of.positives.here().len())?,
            Some(items) => {
                items.check_below("items with positives", of.positives.len())?;
                if items.is_empty() || !count.is_multiple_of(items.len()) {
                    let items = items.len();
                    return Err(Error::Plan(format!("{count} queries of {items} items")));
                }
            }
        }
        Ok(())
    }

    /// That keys in parts come with positives in parts, each process's its own.
    fn check_part(&self, of: &SoftmaxLoss) -> Result<()> {
        let (here, items) = (of.positives.here(), of.positives.len());
        let part = match of.keys.shard() {
            Some(_) => self.communicator.part(items),
            None => 0..items,
        };
        Error::refuse(here != part, || {
            format!("positives of items {here:?} of {items}, where this process has {part:?}")
        })
    }

    /// Softmax cross-entropy of a batch of logits (a row of `classes` each): the class of row b is
    /// `labels[items[b]]`.
    pub fn cross_entropy(
        &mut self,
        logits: &Buffer,
        classes: usize,
        labels: &Buffer<u32>,
        items: &Buffer<u32>,
        loss: Loss,
    ) -> Result<()> {
        self.labelled_loss(Labelled { logits, classes, labels, items, weights: None }, loss)
    }

    /// The same with a weight for each class, of which there are as many: a row's loss and gradient
    /// are multiplied by its class's.
    pub fn weighted_cross_entropy(
        &mut self,
        logits: &Buffer,
        labels: &Buffer<u32>,
        items: &Buffer<u32>,
        weights: &Buffer,
        loss: Loss,
    ) -> Result<()> {
        let (classes, weights) = (weights.len(), Some(weights));
        self.labelled_loss(Labelled { logits, classes, labels, items, weights }, loss)
    }

    fn labelled_loss(&mut self, of: Labelled, loss: Loss) -> Result<()> {
        loss.check(of.check()?, of.logits)?;
        let loss = self.shared(loss);
        either!(&mut self.backend, stream => stream.cross_entropy(&of, loss))
    }

    /// Rows of `to` become the rows `items` of a matrix.
    pub fn gather_rows(
        &mut self,
        from: &Buffer,
        dim: usize,
        items: &Buffer<u32>,
        to: &mut Buffer,
    ) -> Result<()> {
        items.check_below("rows gathered", rows("values of whole rows", from.len(), dim)?)?;
        Error::check_length("rows gathered", items.len() * dim, to.len())?;
        either!(&mut self.backend, stream => stream.gather_rows(Rows { values: from, dim }, items, to))
    }

    /// Square pictures of `size`×`size` pixels, each whole and in quarters, all enlarged to that
    /// size (bilinear): `to` takes of each the whole, shrunk to half before, then of each the
    /// quarter above on the left, then those above on the right, below on the left and on the
    /// right.
    pub fn quarters(
        &mut self,
        pixels: &Buffer,
        size: usize,
        channels: usize,
        to: &mut Buffer,
    ) -> Result<()> {
        let one = size * size * channels;
        if size < 2 || one == 0 || !pixels.len().is_multiple_of(one) {
            let there = pixels.len();
            return Err(Error::Plan(format!(
                "{there} values are not pictures of {size}×{size}×{channels}, two pixels a side \
                 or more"
            )));
        }
        Error::check_length("wholes and quarters", 5 * pixels.len(), to.len())?;
        either!(&mut self.backend, stream => stream.quarters(pixels, [size, channels], to))
    }

    /// What the parts of a picture add up to, and what another picture must not ([`Counting`]).
    /// `distances` takes (`=`) for each picture minus the squared distance from the other's whole
    /// and minus that from its own, as logits of two classes: the second is to be the greater.
    pub fn counting(&mut self, of: &Counting, distances: &mut Buffer, loss: Loss) -> Result<()> {
        Views { rows: of.rows, views: of.views, dim: of.dim }.check()?;
        let pictures = of.rows.len() / (of.views * of.dim);
        if pictures < 2 || !(of.margin > 0.0 && of.margin.is_finite()) {
            let margin = of.margin;
            return Err(Error::Plan(format!(
                "counting {pictures} pictures, of which there must be two, with a margin of \
                 {margin}"
            )));
        }
        Error::check_length("distances", 2 * pictures, distances.len())?;
        loss.check(pictures, of.rows)?;
        let loss = self.shared(loss);
        either!(&mut self.backend, stream => stream.counting(of, distances, loss))
    }

    /// The contrastive loss between views (NT-Xent): rows of `dim` are view 0 of all pictures, then
    /// view 1, and so on. Each row's other views are told from all other rows; the gradient is that
    /// of every row, as query and as key.
    pub fn contrastive(
        &mut self,
        rows: &Buffer,
        views: usize,
        dim: usize,
        temperature: f32,
        loss: Loss,
    ) -> Result<()> {
        check_temperature(temperature)?;
        let of = Views { rows, views, dim };
        of.check()?;
        loss.check(rows.len() / dim, rows)?;
        let loss = self.shared(loss);
        either!(&mut self.backend, stream => stream.contrastive(of, temperature, loss))
    }

    /// −cos(p, z) of each row of predictions and targets, with a gradient for the predictions alone
    /// (stop-gradient).
    pub fn cosine(
        &mut self,
        predictions: &Buffer,
        targets: &Buffer,
        dim: usize,
        loss: Loss,
    ) -> Result<()> {
        check_pair(predictions, targets, dim, &loss)?;
        let loss = self.shared(loss);
        either!(&mut self.backend, stream => stream.cosine([predictions, targets], dim, loss))
    }

    /// A loss of one's own, by code that runs on the host: `work` is given the values of `of`, and
    /// writes as many losses as `loss.rows` has and the gradient of their mean; the loss's weight
    /// is applied afterwards. What the step asked for before is done when it runs, and it is called
    /// once in each step. On a GPU the step waits for it, and for the values on their way.
    pub fn custom_loss(&mut self, of: &Buffer, loss: Loss, work: HostLoss) -> Result<()> {
        loss.check(loss.rows.len(), of)?;
        let loss = self.shared(loss);
        either!(&mut self.backend, stream => stream.custom_loss(of, loss, work))
    }

    /// For each row of stacked views, the mean of the same picture's other views, each normalised
    /// first if asked.
    pub fn mean_of_others(
        &mut self,
        rows: &Buffer,
        views: usize,
        dim: usize,
        normalise: bool,
        to: &mut Buffer,
    ) -> Result<()> {
        Error::check_length("means of other views", rows.len(), to.len())?;
        let of = Views { rows, views, dim };
        of.check()?;
        either!(&mut self.backend, stream => stream.mean_of_others(of, normalise, to))
    }

    /// For each query the key most similar to it, by inner product; of equal ones the first. `to`
    /// (queries × dim) takes the keys themselves. A query that is not a number has none, and its
    /// row is NaN.
    pub fn nearest_rows(
        &mut self,
        queries: &Buffer,
        keys: &Buffer,
        dim: usize,
        to: &mut Buffer,
    ) -> Result<()> {
        Error::check_length("nearest rows", queries.len(), to.len())?;
        let whole = |b: &Buffer| dim > 0 && b.len().is_multiple_of(dim);
        Error::refuse(!whole(queries) || !whole(keys) || keys.is_empty(), || {
            format!(
                "nearest rows: {} and {} values are not queries and one or more keys of {dim}",
                queries.len(),
                keys.len()
            )
        })?;
        either!(&mut self.backend, stream => stream.nearest_rows([queries, keys], dim, to))
    }

    /// Rows `indices` of `keys` become normalise((1 − rate) · row + rate · query), unless the
    /// step's loss is not a finite number. There is a query for each index; more of them are left
    /// alone.
    pub fn blend_rows(
        &mut self,
        keys: &mut Buffer,
        dim: usize,
        indices: &Buffer<u32>,
        queries: &Buffer,
        rate: f32,
    ) -> Result<()> {
        if queries.len() < indices.len() * dim {
            Error::check_length("queries", indices.len() * dim, queries.len())?;
        }
        indices.check_below("rows to blend", self.rows_of("keys", keys, dim)?)?;
        either!(&mut self.backend, stream => stream.blend_rows(keys, dim, indices, queries, rate))
    }

    /// For each row of `dim` the number of the codebook's entry nearest to it, by Euclidean
    /// distance; of equally near ones the first (vector quantisation). `to` may hold numbers of all
    /// entries ([`Buffer::below`]).
    pub fn quantise(
        &mut self,
        rows: &Buffer,
        codebook: &Buffer,
        dim: usize,
        to: &mut Buffer<u32>,
    ) -> Result<()> {
        let count = self::rows("rows to quantise", rows.len(), dim)?;
        Error::check_length("numbers of entries", count, to.len())?;
        let entries = self::rows("a codebook", codebook.len(), dim)?;
        if to.limit() < entries || entries == 0 {
            let limit = to.limit();
            return Err(Error::Plan(format!("{entries} entries for numbers below {limit}")));
        }
        either!(&mut self.backend, stream => stream.quantise([rows, codebook], dim, to))
    }

    /// How often the greatest logit of a row of `classes` is that of its class `labels[items[b]]`,
    /// added to what is there: `tally[0]` counts right guesses, `tally[1 + c]` rows of class c.
    pub fn tally(
        &mut self,
        logits: &Buffer,
        classes: usize,
        labels: &Buffer<u32>,
        items: &Buffer<u32>,
        tally: &mut Buffer<u32>,
    ) -> Result<()> {
        let of = Labelled { logits, classes, labels, items, weights: None };
        of.check()?;
        Error::check_length("a tally of classes", classes + 1, tally.len())?;
        either!(&mut self.backend, stream => stream.tally(&of, tally))
    }

    /// Draws a class for each picture and writes it to `labels`; `to` takes the tiles of that
    /// class, enlarged to the size of a picture, one picture's after the other's.
    pub fn tiles(&mut self, of: &Tiles, labels: &mut Buffer<u32>, to: &mut Buffer) -> Result<()> {
        of.check(labels, to)?;
        let first = self.communicator.rank() * labels.len();
        either!(&mut self.backend, stream => stream.tiles(of, first, labels, to))
    }

    /// Fills `to` with numbers drawn uniformly from [−1, 1), others in every step.
    pub fn uniform(&mut self, seed: u64, to: &mut Buffer) -> Result<()> {
        either!(&mut self.backend, stream => stream.uniform(seed, to))
    }

    /// A process's share of a loss: means are over the rows of all processes, of which each has as
    /// many.
    fn shared<'a>(&self, loss: Loss<'a>) -> Loss<'a> {
        Loss { weight: loss.weight / self.communicator.ranks() as f32, ..loss }
    }

    /// Rows of a matrix, on all processes where it is sharded.
    fn rows_of(&self, what: &str, matrix: &Buffer, dim: usize) -> Result<usize> {
        let here = rows(what, matrix.len(), dim)?;
        let Some(shard) = matrix.shard() else {
            return Ok(here);
        };
        let part = self.communicator.part(shard.rows);
        match (shard.first, here) == (part.start, part.len()) {
            true => Ok(shard.rows),
            false => Err(Error::Plan(format!(
                "{what}: {here} rows from {} on are not this process's part of {}",
                shard.first, shard.rows
            ))),
        }
    }

    /// `to` = `from`.
    pub fn copy(&mut self, from: &Buffer, to: &mut Buffer) -> Result<()> {
        Error::check_length("values copied", to.len(), from.len())?;
        either!(&mut self.backend, stream => stream.add(from, to, false))
    }

    /// `to` += `from`.
    pub fn add(&mut self, from: &Buffer, to: &mut Buffer) -> Result<()> {
        Error::check_length("values added", to.len(), from.len())?;
        either!(&mut self.backend, stream => stream.add(from, to, true))
    }
}

impl Loss<'_> {
    /// Room for a loss of each of so many rows, and for a gradient of the values they are computed
    /// of.
    fn check(&self, rows: usize, of: &Buffer) -> Result<()> {
        Error::check_length("losses", rows, self.rows.len())?;
        Error::check_length("gradient", of.len(), self.gradient.len())
    }
}

impl Labelled<'_> {
    /// A row of logits for each item, and a label, a class among them, for each item that there
    /// is; how many rows.
    fn check(&self) -> Result<usize> {
        self.labels.check_below("labels", self.classes)?;
        self.items.check_below("items with labels", self.labels.len())?;
        let count = rows("logits", self.logits.len(), self.classes)?;
        Error::check_length("items with logits", count, self.items.len())?;
        Ok(count)
    }
}

/// Two matrices of one shape, and room for a loss of each row and the first one's gradient.
fn check_pair(a: &Buffer, b: &Buffer, dim: usize, loss: &Loss) -> Result<()> {
    let count = rows("values of whole rows", a.len(), dim)?;
    Error::check_length("values of the other matrix", a.len(), b.len())?;
    loss.check(count, a)
}

impl Views<'_> {
    /// Rows are two or more views of as many pictures each.
    fn check(&self) -> Result<()> {
        let Views { rows, views, dim } = *self;
        Error::refuse(!(views >= 2 && dim > 0 && rows.len().is_multiple_of(views * dim)), || {
            format!("{} values are not rows of {dim} for {views} views, two or more", rows.len())
        })
    }
}

/// Which of some things that are made for a shape each is for the shape at hand; made when it is
/// met for the first time.
pub(crate) fn made_for_shape<S: PartialEq, T>(
    made: &mut Vec<(S, T)>,
    shape: S,
    make: impl FnOnce() -> Result<T>,
) -> Result<usize> {
    match made.iter().position(|(of, _)| *of == shape) {
        Some(place) => Ok(place),
        None => {
            made.push((shape, make()?));
            Ok(made.len() - 1)
        }
    }
}
