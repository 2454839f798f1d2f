//! A server of our own that cuts connections, ignores ranges, lies and refuses, and the program
//! without a proxy before it.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::common::{Ran, Sandbox};

/// How the server treats a request.
#[derive(Clone, Copy, Debug)]
pub enum Manner {
    /// Answers as asked.
    Good,
    /// Ends the connection after so many bytes of what was asked for.
    CutAfter(usize),
    /// Gives everything, whatever was asked for.
    NoRanges,
    /// Answers a range that begins elsewhere.
    WrongRange,
    /// Answers with this status and nothing else.
    Status(u16),
}

/// Serves one body at every path; the n-th request is treated in the n-th manner, later ones in the
/// last.
pub struct Server {
    pub address: String,
    /// The `Range` of each request so far, empty where there was none.
    ranges: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub fn start(body: Vec<u8>, manners: &[Manner]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let ranges = Arc::new(Mutex::new(Vec::new()));
        let (log, manners) = (Arc::clone(&ranges), manners.to_vec());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let number = log.lock().unwrap().len().min(manners.len() - 1);
                // A client that has enough hangs up; that is no failure of the test.
                let _ = serve(stream, &body, manners[number], &log);
            }
        });
        Server { address, ranges }
    }

    pub fn requests(&self) -> Vec<String> {
        self.ranges.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: TcpStream,
    body: &[u8],
    manner: Manner,
    log: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut range = String::new();
    for line in BufReader::new(&stream).lines() {
        let line = line?;
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("range")
        {
            range = value.trim().to_owned();
        }
        if line.is_empty() {
            break;
        }
    }
    log.lock().unwrap().push(range.clone());
    let asked = range.strip_prefix("bytes=").and_then(|r| r.strip_suffix('-'));
    let from: Option<usize> = asked.map(|number| number.parse().unwrap());
    let (total, from) = (body.len(), from.filter(|_| !matches!(manner, Manner::NoRanges)));
    if let Manner::Status(status) = manner {
        return write!(
            stream,
            "HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
    }
    if from.is_some_and(|from| from >= total) {
        return write!(
            stream,
            "HTTP/1.1 416 No\r\nContent-Range: bytes */{total}\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
        );
    }
    let (first, rest) = match from {
        Some(from) => (from, &body[from..]),
        None => (0, body),
    };
    let status = if from.is_some() { "206 Partial Content" } else { "200 OK" };
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n", rest.len())?;
    if from.is_some() {
        let first = if matches!(manner, Manner::WrongRange) { first + 1 } else { first };
        write!(stream, "Content-Range: bytes {first}-{}/{total}\r\n", total - 1)?;
    }
    stream.write_all(b"\r\n")?;
    let sent = match manner {
        Manner::CutAfter(n) => n.min(rest.len()),
        _ => rest.len(),
    };
    stream.write_all(&rest[..sent])
}

/// A megabyte that repeats nowhere.
pub fn megabyte() -> Vec<u8> {
    let words = (0..250_000_u32).map(|i| i.wrapping_mul(2_654_435_761));
    words.flat_map(u32::to_le_bytes).collect()
}

/// Runs the program without a proxy: the server is on this machine.
pub fn run(sandbox: &Sandbox, words: &str) -> Ran {
    let mut command = sandbox.command(words);
    for name in ["http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    Ran::of(&mut command)
}
