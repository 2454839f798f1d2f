//! Clients that ask a server as pages do, all at once, and what they saw: upload a picture, look at
//! small copies of what was found, go on to a neighbour.

use std::time::{Duration, Instant};

use serde_json::Value;

/// Small pictures that a client fetches after each search.
const LOOKED_AT: usize = 4;

/// What was asked, and how long each answer took.
#[derive(Debug, Default)]
pub struct Seen {
    /// Seconds until the neighbours of an uploaded picture were there.
    pub uploads: Vec<f64>,
    /// Seconds until the neighbours of a picture on the shelf were there.
    pub searches: Vec<f64>,
    /// Seconds until a small picture was there.
    pub pictures: Vec<f64>,
    /// What went wrong.
    pub errors: Vec<String>,
}

impl Seen {
    /// Questions asked, answered or not.
    pub fn requests(&self) -> usize {
        self.uploads.len() + self.searches.len() + self.pictures.len() + self.errors.len()
    }

    fn add(&mut self, other: Seen) {
        self.uploads.extend(other.uploads);
        self.searches.extend(other.searches);
        self.pictures.extend(other.pictures);
        self.errors.extend(other.errors);
    }
}

/// So many clients ask for so long; each uploads `pictures` in turn, beginning with another.
pub fn ask(address: &str, pictures: &[Vec<u8>], clients: usize, time: Duration) -> Seen {
    let end = Instant::now() + time;
    let mut seen = Seen::default();
    std::thread::scope(|threads| {
        let all: Vec<_> = (0..clients)
            .map(|c| threads.spawn(move || Client::new(address).walk(pictures, c * 7919, end)))
            .collect();
        for client in all {
            match client.join() {
                Ok(part) => seen.add(part),
                Err(_) => seen.errors.push("a client ended".into()),
            }
        }
    });
    seen
}

struct Client {
    agent: ureq::Agent,
    address: String,
    seen: Seen,
}

impl Client {
    fn new(address: &str) -> Client {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(30)))
            .build();
        Client {
            agent: agent.into(),
            address: address.trim_end_matches('/').into(),
            seen: Seen::default(),
        }
    }

    fn walk(mut self, pictures: &[Vec<u8>], from: usize, end: Instant) -> Seen {
        for i in from.. {
            if Instant::now() >= end {
                break;
            }
            if let Err(why) = self.step(&pictures[i % pictures.len()]) {
                self.seen.errors.push(why);
            }
        }
        self.seen
    }

    fn step(&mut self, picture: &[u8]) -> Result<(), String> {
        let begun = Instant::now();
        let post = self.agent.post(format!("{}/api/search?k=36", self.address));
        let found = neighbours(&body(post.send(picture))?)?;
        self.seen.uploads.push(begun.elapsed().as_secs_f64());
        self.look_at(&found)?;

        let begun = Instant::now();
        let next = found.get(1).or(found.first()).ok_or("nothing was found")?;
        let found = neighbours(&self.get(&format!("/api/search?k=36&id={next}"))?)?;
        self.seen.searches.push(begun.elapsed().as_secs_f64());
        self.look_at(&found)
    }

    fn look_at(&mut self, found: &[u64]) -> Result<(), String> {
        for id in found.iter().take(LOOKED_AT) {
            let begun = Instant::now();
            self.get(&format!("/api/picture/{id}/small"))?;
            self.seen.pictures.push(begun.elapsed().as_secs_f64());
        }
        Ok(())
    }

    fn get(&self, path: &str) -> Result<Vec<u8>, String> {
        body(self.agent.get(format!("{}{path}", self.address)).call())
    }
}

fn body(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Vec<u8>, String> {
    let mut answer = answer.map_err(|e| e.to_string())?;
    let bytes = answer.body_mut().read_to_vec();
    let bytes = bytes.map_err(|e| e.to_string())?;
    match answer.status().as_u16() {
        200 => Ok(bytes),
        code => Err(format!("{code}: {}", String::from_utf8_lossy(&bytes))),
    }
}

fn neighbours(answer: &[u8]) -> Result<Vec<u64>, String> {
    let answer: Value = serde_json::from_slice(answer).map_err(|e| e.to_string())?;
    let found = answer["neighbours"].as_array();
    let found = found.ok_or("an answer without neighbours")?;
    Ok(found.iter().filter_map(|n| n["id"].as_u64()).collect())
}
