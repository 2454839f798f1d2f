//! A server that runs for as long as somebody visits it.

use std::net::SocketAddr;
use std::path::Path;

use anchorhood_index::fuzzing::index_of;
use anchorhood_serve::{Catalog, ServeOptions, Server, Stop, inference_queue};

/// Images of a folder with their vectors, and labels where there are as many.
pub fn catalog(
    folder: &Path,
    names: Vec<String>,
    labels: Vec<String>,
    vectors: Vec<f32>,
) -> Catalog {
    let labels: Vec<Option<&str>> = labels.iter().map(|label| Some(label.as_str())).collect();
    let index = index_of(folder, &names, &labels, vectors);
    Catalog::of_index("test".into(), index, None).unwrap()
}

/// It is told to stop also when the visit fails.
struct Leaving(Stop);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.now();
    }
}

/// What stands in for a model: vectors of squares of so many pixels a side.
pub type StandIn = (usize, fn(&[u8]) -> Vec<f32>);

/// Serves while `visit` lasts.
pub fn visited<T>(
    options: ServeOptions,
    catalog: Catalog,
    run: Option<&Path>,
    model: Option<StandIn>,
    visit: impl FnOnce(SocketAddr) -> T,
) -> T {
    let options = ServeOptions { port: 0, ..options };
    let (asker, queue) = model.map(|(side, _)| inference_queue(side)).unzip();
    let (stop, run) = (Stop::default(), run.map(Path::to_path_buf));
    let server = Server::bind(&options, catalog, vec![], run, asker, stop.clone()).unwrap();
    let address = server.address();
    std::thread::scope(|threads| {
        if let Some((queue, (_, embed))) = queue.zip(model) {
            let answer = move |squares: &[u8]| Ok(embed(squares));
            threads.spawn(move || queue.answer(4, answer, |_| Err("there is no run".into())));
        }
        let serving = threads.spawn(|| server.run());
        let leaving = Leaving(stop);
        let seen = visit(address);
        drop(leaving);
        serving.join().unwrap().unwrap();
        seen
    })
}
