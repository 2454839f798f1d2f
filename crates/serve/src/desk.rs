//! Between the server, which has many threads, and the model, which has one: a desk where pictures are handed over.

use anchorhood_data::Picture;
use tokio::sync::{mpsc, oneshot};

/// Pictures that may wait.
const QUEUE: usize = 64;

type Answer = Result<Vec<f32>, String>;
type Question = (Picture, oneshot::Sender<Answer>);

/// Hands pictures over and gets vectors.
#[derive(Clone, Debug)]
pub struct Asker(mpsc::Sender<Question>);

/// Where pictures arrive.
#[derive(Debug)]
pub struct Desk(mpsc::Receiver<Question>);

/// Both sides.
pub fn desk() -> (Asker, Desk) {
    let (send, receive) = mpsc::channel(QUEUE);
    (Asker(send), Desk(receive))
}

impl Asker {
    /// The vector of a picture.
    pub(crate) async fn ask(&self, picture: Picture) -> Answer {
        let (send, receive) = oneshot::channel();
        let closed = || "the model is not there any more".to_string();
        self.0.send((picture, send)).await.map_err(|_| closed())?;
        receive.await.unwrap_or_else(|_| Err(closed()))
    }
}

impl Desk {
    /// Answers on this thread until every asker is gone.
    pub fn answer(mut self, mut embed: impl FnMut(&Picture) -> Answer) {
        while let Some((picture, to)) = self.0.blocking_recv() {
            // Nobody may wait any more: then there is nobody to tell.
            let _ = to.send(embed(&picture));
        }
    }
}
