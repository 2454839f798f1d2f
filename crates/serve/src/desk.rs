//! Between the server, which has many threads, and the model, which has one: a desk where pictures are handed over.
//!
//! Pictures that wait together go through the network together: a batch takes little longer than one of its pictures.

use tokio::sync::{mpsc, oneshot};

const CLOSED: &str = "the model is not there any more";
/// Questions that may wait; whoever comes later waits before the desk.
const QUEUE: usize = 64;

type Vector = Result<Vec<f32>, String>;
type Look = Result<Vec<u8>, String>;

#[derive(Debug)]
enum Question {
    Vector(Vec<u8>, oneshot::Sender<Vector>),
    Attention(usize, oneshot::Sender<Look>),
}

/// Hands pictures over and gets vectors.
#[derive(Clone, Debug)]
pub struct Asker {
    to: mpsc::Sender<Question>,
    size: usize,
}

/// Where pictures arrive.
#[derive(Debug)]
pub struct Desk(mpsc::Receiver<Question>);

/// Both sides, for a model that is given squares of `size` pixels a side.
pub fn desk(size: usize) -> (Asker, Desk) {
    let (to, from) = mpsc::channel(QUEUE);
    (Asker { to, size }, Desk(from))
}

impl Asker {
    /// Pixels a side of what the model is given.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The vector of a picture, `size`×`size`×3 bytes.
    pub(crate) async fn ask(&self, square: Vec<u8>) -> Vector {
        let (send, receive) = oneshot::channel();
        self.put(Question::Vector(square, send)).await?;
        receive.await.unwrap_or_else(|_| Err(CLOSED.into()))
    }

    /// A picture of the shelf under the heat of the model's attention, as PNG.
    pub(crate) async fn look(&self, picture: usize) -> Look {
        let (send, receive) = oneshot::channel();
        self.put(Question::Attention(picture, send)).await?;
        receive.await.unwrap_or_else(|_| Err(CLOSED.into()))
    }

    async fn put(&self, question: Question) -> Result<(), String> {
        self.to.send(question).await.map_err(|_| CLOSED.into())
    }
}

impl Desk {
    /// Answers on this thread until every asker is gone: `embed` gives the vectors of up to `batch` pictures, one after the
    /// other as they came, `look` a picture of the shelf under the heat of attention, as PNG.
    pub fn answer(
        mut self,
        batch: usize,
        mut embed: impl FnMut(&[u8]) -> Vector,
        mut look: impl FnMut(usize) -> Look,
    ) {
        let mut squares = vec![];
        let mut waiting: Vec<oneshot::Sender<Vector>> = vec![];
        while let Some(question) = self.0.blocking_recv() {
            let mut next = Some(question);
            while let Some(question) = next.take() {
                match question {
                    // Nobody may wait any more, here and below: then there is nobody to tell.
                    Question::Attention(picture, to) => drop(to.send(look(picture))),
                    Question::Vector(square, to) => {
                        squares.extend_from_slice(&square);
                        waiting.push(to);
                    }
                }
                if waiting.len() < batch {
                    next = self.0.try_recv().ok();
                }
            }
            if !waiting.is_empty() {
                tell(embed(&squares), &mut waiting);
                squares.clear();
            }
        }
    }
}

/// Gives each its part of the vectors, or all of them the reason why there are none.
fn tell(vectors: Vector, waiting: &mut Vec<oneshot::Sender<Vector>>) {
    let count = waiting.len();
    for (i, to) in waiting.drain(..).enumerate() {
        let part = match &vectors {
            Ok(all) => Ok(all[i * all.len() / count..(i + 1) * all.len() / count].to_vec()),
            Err(why) => Err(why.clone()),
        };
        let _ = to.send(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_wait_are_answered_together_and_each_with_its_own() {
        let (asker, desk) = desk(1);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut batches = vec![];
        std::thread::scope(|threads| {
            let asked = threads.spawn(move || {
                runtime.block_on(async {
                    let one = |i: u8| asker.ask(vec![i, 0, 0]);
                    tokio::join!(one(1), one(2), one(3), one(4), one(9), asker.look(7))
                })
            });
            // All six are there before the first is answered.
            while desk.0.len() < 6 {
                std::thread::yield_now();
            }
            desk.answer(
                4,
                |squares| {
                    batches.push(squares.len() / 3);
                    match squares.contains(&9) {
                        true => Err("nine".into()),
                        false => Ok(squares.iter().map(|b| f32::from(*b)).collect()),
                    }
                },
                |i| Ok(vec![i as u8]),
            );
            let (a, b, _, d, bad, look) = asked.join().unwrap();
            assert_eq!(a.unwrap(), [1.0, 0.0, 0.0]);
            assert_eq!(b.unwrap(), [2.0, 0.0, 0.0]);
            assert_eq!(d.unwrap(), [4.0, 0.0, 0.0]);
            assert_eq!(bad.unwrap_err(), "nine");
            assert_eq!(look.unwrap(), [7]);
        });
        assert_eq!(batches, [4, 1]);
    }
}
