//! Every command in a `sh` block of the tutorial and the how-to pages runs, in order, on small
//! data. Commands that need a GPU, a download, hours or another program are in `bash` blocks.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Ran, Sandbox};
use crate::folders;

/// The length of a training that the page does not say.
const SHORT: &str = "--epochs 1";
/// The images of a comparison.
const FEW: &str = "--shapes-train 600 --shapes-test 50";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The commands of a page's `sh` blocks, without comments; a `\` at the end joins lines.
fn commands(page: &str) -> Vec<String> {
    let mut found: Vec<String> = vec![];
    let mut kind = None;
    let mut goes_on = false;
    for line in page.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("```") {
            kind = if kind.is_some() { None } else { Some(name) };
            continue;
        }
        let command = line.split(" #").next().unwrap_or_default().trim();
        if kind != Some("sh") || command.is_empty() || command.starts_with('#') {
            continue;
        }
        let (command, more) = command.strip_suffix('\\').map_or((command, false), |c| (c, true));
        match found.last_mut().filter(|_| goes_on) {
            Some(last) => *last += command,
            None => found.push(command.into()),
        }
        goes_on = more;
    }
    found
}

/// The folders, files and the run that the pages speak of.
fn world() -> Sandbox {
    let sandbox = Sandbox::new();
    for folder in ["photos/cat", "photos/dog", "scans", "more"] {
        folders::fill(&sandbox.path(folder), 26);
    }
    for (n, folder) in ["photos/cat", "photos/dog", "scans"].into_iter().enumerate() {
        folders::picture(100 + n as u32).save(sandbox.path(folder).join("own.png")).unwrap();
    }
    for (n, name) in ["query.jpg", "query.png", "a.jpg", "b.jpg"].into_iter().enumerate() {
        folders::picture(200 + n as u32).save(sandbox.path(name)).unwrap();
    }
    folders::picture(20).save(sandbox.path("photos/cat/20.jpg")).unwrap();
    sandbox.write("labels.csv", "cat/0.png,cat\ncat/1.png,cat\ndog/2.png,dog\ndog/own.png,dog\n");
    std::fs::create_dir(sandbox.path("bin")).unwrap();
    let program = env!("CARGO_BIN_EXE_anchorhood");
    std::os::unix::fs::symlink(program, sandbox.path("bin/anchorhood")).unwrap();
    let settings = "--epochs 1 --rounds 1 --width 2 --size 16 --quiet --name photos-1";
    sandbox.run(&format!("train photos {settings}")).succeeded();
    sandbox.run("index photos --quiet").succeeded();
    sandbox
}

/// A shell in the world, in which `anchorhood` is the program.
fn shell(world: &Sandbox, line: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(world.path("."));
    shell.env("PATH", format!("{}:{path}", world.path("bin").display()));
    shell.env("ANCHORHOOD_CACHE", world.path("cache"));
    shell.env("XDG_DATA_HOME", world.path("user-data"));
    shell.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    shell
}

/// A server is there when it prints its address; then it is ended.
fn serves(world: &Sandbox, line: &str) {
    let mut server = shell(world, &format!("exec {line} --port 0"));
    let mut server = server.stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut first).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(first.contains("http://"), "{line}: {first}");
}

/// Runs every command of a page: how many there were, and what failed.
fn run_all(page: &Path) -> (usize, Vec<String>) {
    let commands = commands(&std::fs::read_to_string(page).unwrap());
    if commands.is_empty() {
        return (0, vec![]);
    }
    let world = world();
    let mut failed = vec![];
    for line in &commands {
        if line.starts_with("mpirun") && Command::new("mpirun").arg("--version").output().is_err() {
            anchorhood_testing::skip(&format!("no mpirun: {line}"));
        } else if line.starts_with("anchorhood reproduce all") {
            // It has tests of its own.
        } else if line.starts_with("anchorhood serve") {
            serves(&world, line);
        } else {
            let says = ["--epochs", "--minutes", "--explain", "--resume", "--config"];
            let open = !says.iter().any(|s| line.contains(s));
            let line = match line.split(' ').nth(1) {
                Some("train") if open => format!("{line} {SHORT}"),
                Some("compare") => format!("{line} {FEW}"),
                _ => line.to_string(),
            };
            let ran = Ran::of(&mut shell(&world, &line));
            if ran.code != Some(0) {
                failed.push(format!("{}: {line}\n{}", page.display(), ran.stderr));
            }
        }
    }
    (commands.len(), failed)
}

#[test]
#[ignore = "long: trainings and servers, a command after the other"]
fn commands_of_the_tutorial_run() {
    let page = "text\n```sh\n# no\na b  # c\nd \\\n    e\n```\n```bash\nf\n```\n";
    assert_eq!(commands(page), ["a b", "d e"]);
    let (ran, failed) = run_all(&docs().join("tutorial.md"));
    assert!(ran > 3 && failed.is_empty(), "{ran} commands\n{}", failed.join("\n"));
}

#[test]
#[ignore = "long: trainings and servers, a command after the other"]
fn commands_of_the_how_to_pages_run() {
    let pages = std::fs::read_dir(docs().join("how-to")).unwrap();
    let pages: Vec<PathBuf> = pages.map(|page| page.unwrap().path()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mine = std::iter::from_fn(|| pages.get(next.fetch_add(1, Ordering::Relaxed)));
        mine.map(|page| run_all(page)).collect::<Vec<_>>()
    };
    let all = std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.map(|w| w.join().unwrap()).concat()
    });
    let ran: usize = all.iter().map(|(ran, _)| ran).sum();
    let failed: Vec<String> = all.into_iter().flat_map(|(_, failed)| failed).collect();
    assert!(ran > 40 && failed.is_empty(), "{ran} commands\n{}", failed.join("\n"));
}
