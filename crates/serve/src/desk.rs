//! Between the server, which has many threads, and the model, which has one: a desk where pictures are handed over.

use anchorhood_data::Picture;
use tokio::sync::{mpsc, oneshot};

const CLOSED: &str = "the model is not there any more";
/// Pictures that may wait.
const QUEUE: usize = 64;

type Answer = Result<Vec<f32>, String>;
type Look = Result<Vec<u8>, String>;

#[derive(Debug)]
enum Question {
    Vector(Box<Picture>, oneshot::Sender<Answer>),
    Attention(usize, oneshot::Sender<Look>),
}

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
        self.put(Question::Vector(Box::new(picture), send)).await?;
        receive.await.unwrap_or_else(|_| Err(CLOSED.into()))
    }

    /// A picture of the shelf under the heat of the model's attention, as PNG.
    pub(crate) async fn look(&self, picture: usize) -> Look {
        let (send, receive) = oneshot::channel();
        self.put(Question::Attention(picture, send)).await?;
        receive.await.unwrap_or_else(|_| Err(CLOSED.into()))
    }

    async fn put(&self, question: Question) -> Result<(), String> {
        self.0.send(question).await.map_err(|_| CLOSED.into())
    }
}

impl Desk {
    /// Answers on this thread until every asker is gone: `embed` gives a picture's vector, `look` a picture of the shelf
    /// under the heat of attention, as PNG.
    pub fn answer(
        mut self,
        mut embed: impl FnMut(&Picture) -> Answer,
        mut look: impl FnMut(usize) -> Look,
    ) {
        while let Some(question) = self.0.blocking_recv() {
            // Nobody may wait any more: then there is nobody to tell.
            let _ = match question {
                Question::Vector(picture, to) => to.send(embed(&picture)).map_err(drop),
                Question::Attention(picture, to) => to.send(look(picture)).map_err(drop),
            };
        }
    }
}
