//! Between the server, which has many threads, and the model, which has one: a queue where pictures
//! are handed over.
//!
//! Pictures that wait together go through the network together: a batch takes little longer than
//! one of its pictures. Uploads and attention wait in queues of their own and take turns, one batch
//! and then one map, so that an upload waits for the map being made and not for all that were asked
//! for before it, and no crowd of uploads keeps a map waiting for ever. By hand: `tower::buffer`
//! has one queue, which gives no batches.

use anchorhood_data::Squaring;
use tokio::sync::{mpsc, oneshot};

const CLOSED: &str = "the model is not there any more";
/// Questions of a kind that may wait; whoever comes later waits before the queue.
const QUEUE: usize = 64;

type Vector = Result<Vec<f32>, String>;
type Look = Result<Vec<u8>, String>;

/// What is asked, and who waits for the answer.
#[derive(Debug)]
struct Question<Q, A>(Q, oneshot::Sender<Result<A, String>>);

type Upload = Question<Vec<u8>, Vec<f32>>;
type Attention = Question<usize, Vec<u8>>;

/// Hands pictures over and gets vectors.
#[derive(Clone, Debug)]
pub struct Asker {
    uploads: mpsc::Sender<Upload>,
    attention: mpsc::Sender<Attention>,
    bell: mpsc::UnboundedSender<()>,
    squaring: Squaring,
}

/// Where pictures arrive.
#[derive(Debug)]
pub struct InferenceQueue {
    uploads: mpsc::Receiver<Upload>,
    attention: mpsc::Receiver<Attention>,
    /// Rung once for each question, after it was put into its queue.
    bell: mpsc::UnboundedReceiver<()>,
}

/// Both sides, for a model that is given such squares.
pub fn inference_queue(squaring: impl Into<Squaring>) -> (Asker, InferenceQueue) {
    let (to_uploads, uploads) = mpsc::channel(QUEUE);
    let (to_attention, attention) = mpsc::channel(QUEUE);
    let (to_bell, bell) = mpsc::unbounded_channel();
    let asker = Asker {
        uploads: to_uploads,
        attention: to_attention,
        bell: to_bell,
        squaring: squaring.into(),
    };
    let queue = InferenceQueue { uploads, attention, bell };
    (asker, queue)
}

impl Asker {
    /// How a picture becomes the square that the model is given.
    pub(crate) fn squaring(&self) -> Squaring {
        self.squaring
    }

    /// The vector of a picture, by its square.
    pub(crate) async fn ask(&self, square: Vec<u8>) -> Vector {
        self.put(&self.uploads, square).await
    }

    /// A picture of the shelf under the heat of the model's attention, as PNG.
    pub(crate) async fn look(&self, picture: usize) -> Look {
        self.put(&self.attention, picture).await
    }

    /// Puts a question into its queue, rings, and waits for the answer.
    async fn put<Q, A>(
        &self,
        queue: &mpsc::Sender<Question<Q, A>>,
        question: Q,
    ) -> Result<A, String> {
        let (send, receive) = oneshot::channel();
        let put = queue.send(Question(question, send)).await;
        put.map_err(|_| CLOSED)?;
        self.bell.send(()).map_err(|_| CLOSED)?;
        receive.await.unwrap_or_else(|_| Err(CLOSED.into()))
    }
}

impl InferenceQueue {
    /// Answers on this thread until every asker is gone: `embed` gives the vectors of up to `batch`
    /// pictures, one after the other as they came, `look` a picture of the shelf under the heat of
    /// attention, as PNG.
    pub fn answer(
        mut self,
        batch: usize,
        mut embed: impl FnMut(&[u8]) -> Vector,
        mut look: impl FnMut(usize) -> Look,
    ) {
        // A turn answers at least one question where there is one, so there are rings enough for
        // all.
        while self.bell.blocking_recv().is_some() {
            self.embed_waiting(batch, &mut embed);
            if let Some(Question(picture, to)) = awaited(&mut self.attention) {
                // Nobody may wait any more, here and below: then there is nobody to tell.
                let _ = to.send(look(picture));
            }
        }
    }

    /// One batch of those uploads that wait.
    fn embed_waiting(&mut self, batch: usize, embed: &mut impl FnMut(&[u8]) -> Vector) {
        let (mut squares, mut waiting) = (vec![], vec![]);
        while waiting.len() < batch
            && let Some(Question(square, to)) = awaited(&mut self.uploads)
        {
            squares.extend_from_slice(&square);
            waiting.push(to);
        }
        if !waiting.is_empty() {
            tell(embed(&squares), waiting);
        }
    }
}

/// The next question whose answer somebody still waits for.
fn awaited<Q, A>(queue: &mut mpsc::Receiver<Question<Q, A>>) -> Option<Question<Q, A>> {
    std::iter::from_fn(|| queue.try_recv().ok()).find(|question| !question.1.is_closed())
}

/// Gives each its part of the vectors, or all of them the reason why there are none.
fn tell(vectors: Vector, waiting: Vec<oneshot::Sender<Vector>>) {
    let count = waiting.len();
    for (i, to) in waiting.into_iter().enumerate() {
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
    use crate::fixtures::block_on;

    #[test]
    fn those_who_wait_are_answered_together_and_each_with_its_own() {
        let (asker, queue) = inference_queue(1);
        let mut batches = vec![];
        std::thread::scope(|threads| {
            let asked = threads.spawn(move || {
                block_on(async {
                    let one = |i: u8| asker.ask(vec![i, 0, 0]);
                    tokio::join!(one(1), one(2), one(3), one(4), one(9), asker.look(7))
                })
            });
            // All six are there before the first is answered.
            while queue.bell.len() < 6 {
                std::thread::yield_now();
            }
            queue.answer(
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

    /// In which order so many uploads and looks are answered that all wait: `u` for a batch of two
    /// uploads, `l` for a look.
    fn order(uploads: usize, looks: usize) -> String {
        let (asker, queue) = inference_queue(1);
        let order = std::cell::RefCell::new(String::new());
        let done = |what| order.borrow_mut().push(what);
        std::thread::scope(|threads| {
            threads.spawn(move || ask_all(asker, uploads, looks));
            // Those beyond the queues wait before the queue.
            let full = |n: usize| n.min(QUEUE);
            while queue.bell.len() < full(uploads) + full(looks) {
                std::thread::yield_now();
            }
            let embed = |squares: &[u8]| {
                done('u');
                Ok(vec![0.0; squares.len()])
            };
            let look = |_| {
                done('l');
                Ok(vec![])
            };
            queue.answer(2, embed, look);
        });
        order.into_inner()
    }

    /// Asks for everything at once, the looks first, until all is answered.
    fn ask_all(asker: Asker, uploads: usize, looks: usize) {
        block_on(async {
            let mut asked = tokio::task::JoinSet::new();
            for i in 0..looks {
                let asker = asker.clone();
                asked.spawn(async move { asker.look(i).await.map(drop) });
            }
            for _ in 0..uploads {
                let asker = asker.clone();
                asked.spawn(async move { asker.ask(vec![1, 2, 3]).await.map(drop) });
            }
            while let Some(answered) = asked.join_next().await {
                answered.unwrap().unwrap();
            }
        });
    }

    #[test]
    fn an_upload_does_not_wait_behind_attention() {
        assert_eq!(order(1, 5), "ulllll");
        let looks = 2 * QUEUE;
        assert_eq!(order(1, looks), format!("u{}", "l".repeat(looks)));
    }

    #[test]
    fn uploads_and_attention_take_turns() {
        assert_eq!(order(6, 2), "ululu");
        assert_eq!(order(0, 3), "lll");
    }
}
