//! The program as a server on a free port, and how it is asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::common::Sandbox;

/// A server, ended when the test ends.
pub struct Served {
    pub child: Child,
    pub address: String,
    /// What it printed.
    pub line: String,
    pub agent: ureq::Agent,
}

impl Served {
    pub fn start(sandbox: &Sandbox, args: &[&str]) -> Served {
        Served::start_in(&sandbox.path("."), args)
    }

    pub fn start_in(folder: &Path, args: &[&str]) -> Served {
        Served::start_with(folder, args, &[])
    }

    /// With these variables in its environment.
    pub fn start_with(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> Served {
        let args = [&["serve"], args, &["--port", "0", "--device", "cpu"]].concat();
        let mut command = Command::new(env!("CARGO_BIN_EXE_anchorhood"));
        command.args(args).current_dir(folder);
        command.env_remove("ANCHORHOOD_TOKEN");
        command.env("ANCHORHOOD_CACHE", folder.join("cache"));
        command.envs(variables.iter().copied());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let address = line.trim().split("/?").next().unwrap().to_string();
        assert!(address.starts_with("http://"), "{line:?}");
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(30)))
            .build();
        Served { child, address, line, agent: agent.into() }
    }

    pub fn get(&self, path: &str) -> (u16, Vec<u8>) {
        read(self.agent.get(format!("{}{path}", self.address)).call())
    }

    pub fn json(&self, path: &str) -> Value {
        let (code, body) = self.get(path);
        assert_eq!(code, 200, "{path}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    /// A connection, for what no client library would send.
    pub fn connection(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address["http://".len()..]).unwrap();
        let wait = Some(Duration::from_secs(30));
        stream.set_read_timeout(wait).unwrap();
        stream
    }

    /// A request as it is written, and all that is answered.
    pub fn raw(&self, request: &[u8]) -> String {
        let mut stream = self.connection();
        stream.write_all(request).unwrap();
        let mut answer = vec![];
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The code and the sentence of a refusal.
    pub fn refusal(&self, path: &str) -> (u16, String) {
        let (code, body) = self.get(path);
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        (code, said["error"].as_str().unwrap_or_default().into())
    }

    pub fn upload(&self, bytes: &[u8]) -> (u16, Value) {
        let sent = self.agent.post(format!("{}/api/search?k=5", self.address));
        let (code, body) = read(sent.send(bytes));
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }
}

pub fn read(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> (u16, Vec<u8>) {
    let mut answer = answer.expect("the server answers");
    let code = answer.status().as_u16();
    (code, answer.body_mut().read_to_vec().unwrap())
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
