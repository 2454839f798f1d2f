//! A server that runs for as long as somebody visits it.

use std::net::SocketAddr;

use anchorhood_serve::{Server, Stop};

/// It is told to stop also when the visit fails.
struct Leaving(Stop);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.now();
    }
}

/// Serves while `visit` lasts.
pub fn visited(server: Server, stop: Stop, visit: impl FnOnce(SocketAddr)) {
    let address = server.address();
    std::thread::scope(|threads| {
        let serving = threads.spawn(|| server.run());
        let leaving = Leaving(stop);
        visit(address);
        drop(leaving);
        serving.join().unwrap().unwrap();
    });
}
