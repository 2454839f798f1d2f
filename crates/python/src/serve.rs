//! A page to walk through an index, served on a thread while Python goes on.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anchorhood::{Device, Error, PageOptions, ServeOptions, open_device};
use anchorhood_serve::{Collection, Hearers, Stop};
use pyo3::prelude::*;

use crate::errors::{InputError, WorkError, exception};
use crate::fork;
use crate::model::machine;

/// How long a server may take to listen: it opens an index, and puts a model on its device.
const LONGEST: Duration = Duration::from_secs(60);

/// A server at work.
#[pyclass(frozen, module = "anchorhood._native")]
pub struct Server {
    address: SocketAddr,
    stop: Stop,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Where it listens, or why it does not.
type Began = Result<SocketAddr, Error>;

impl Server {
    /// Begins to serve; listens when this returns.
    pub fn start(
        py: Python<'_>,
        open: impl FnOnce() -> Result<Opened, Error> + Send + 'static,
        host: &str,
        port: u16,
        token: Option<String>,
    ) -> PyResult<Server> {
        fork::check()?;
        let host: IpAddr = host.parse().map_err(|_| {
            InputError::new_err(format!(
                "{host}: is no address of this machine; 127.0.0.1 is seen by it alone"
            ))
        })?;
        let options = ServeOptions {
            host,
            port,
            token,
            framed: true, // by the notebook
            ..ServeOptions::default()
        };
        let (stop, (send, began)) = (Stop::default(), channel());
        let end = stop.clone();
        let thread = std::thread::Builder::new().name("anchorhood-serve".into());
        let thread = thread.spawn(move || {
            if let Err(error) = serve(open, &options, end, &send) {
                let _ = send.send(Err(error)); // it may have listened, and ended
            }
        });
        let thread =
            thread.map_err(|e| WorkError::new_err(format!("no thread to serve on: {e}")))?;
        let address = py.detach(move || listening(&began)).map_err(exception)?;
        Ok(Server { address, stop, thread: Mutex::new(Some(thread)) })
    }
}

fn listening(began: &Receiver<Began>) -> Began {
    let late = || Error::failed("the server did not begin to listen within a minute");
    began.recv_timeout(LONGEST).map_err(|_| late())?
}

/// What is served, and where its model runs, where there is one.
pub type Opened = (Collection, Option<Device>);

fn serve(
    open: impl FnOnce() -> Result<Opened, Error>,
    options: &ServeOptions,
    stop: Stop,
    began: &Sender<Began>,
) -> Result<(), Error> {
    let (collection, device) = open()?;
    let hearers = Hearers {
        listening: &|address| {
            let _ = began.send(Ok(address)); // nobody may wait any more
        },
        warn: &|_| {},
    };
    match device {
        Some(device) => collection.serve(&device, options, stop, &hearers)?,
        None => collection.serve_without_model(options, stop, &hearers)?,
    }
    Ok(())
}

/// Serves folders, a run or an index until it is told to stop.
#[pyfunction]
#[pyo3(signature = (what, model, runs, data, moved, on, host, port, token))]
pub fn serve_page(
    py: Python<'_>,
    what: Vec<PathBuf>,
    model: Option<String>,
    runs: PathBuf,
    data: Option<String>,
    moved: Vec<PathBuf>,
    on: (String, String, usize),
    host: &str,
    port: u16,
    token: Option<String>,
) -> PyResult<Server> {
    let machine = machine(&on.0, &on.1, on.2).map_err(exception)?;
    let open = move || {
        let threads = machine.thread_count();
        let pages = PageOptions { what, model, runs, data, moved, threads };
        let device = || open_device(&machine, &mut |_| {});
        let collection = pages.open(&device, &mut |_| {})?;
        let device = collection.has_model().then(device).transpose()?;
        Ok((collection, device))
    };
    Server::start(py, open, host, port, token)
}

#[pymethods]
impl Server {
    #[getter]
    fn address(&self) -> String {
        self.address.to_string()
    }

    /// Ends it, and waits until it has ended.
    fn stop(&self, py: Python<'_>) {
        self.stop.now();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            py.detach(|| {
                let _ = thread.join(); // what went wrong in it is over
            });
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.now();
    }
}
