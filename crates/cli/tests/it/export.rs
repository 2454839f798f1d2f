//! `anchorhood export` and ONNX models without the library that runs them.

use std::fs;

use crate::common::{Ran, files_below, trained};
use crate::folders::fill;

#[test]
fn nothing_of_a_run_is_written() {
    let sandbox = trained("");
    let run = sandbox.path("runs/a");
    let other = sandbox.path("runs/b");
    fs::create_dir_all(other.join("checkpoints")).unwrap();
    fs::write(other.join("config.toml"), "").unwrap();
    let before = (files_below(&run), files_below(&other));
    let last = "runs/a/checkpoints/last.safetensors";
    let mut cases = vec![
        ("--timm", "runs/a"),
        ("--timm", "./runs/../runs/a/"),
        ("--timm", "runs/a/new"),
        ("--timm", "runs/b"),
        ("--safetensors", "runs/a/model.safetensors"),
        ("--bf16", "runs/a/model.safetensors"),
        ("--onnx", "runs/a/config.toml"),
        ("--safetensors", last),
        ("--onnx", "runs/b/checkpoints/new"),
    ];
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink("runs/a", sandbox.path("link")).unwrap();
        symlink(last, sandbox.path("file")).unwrap();
        symlink("runs/a/model.safetensors", sandbox.path("dangling")).unwrap();
        // A run whose checkpoints lie on another disk.
        fs::rename(run.join("checkpoints"), sandbox.path("elsewhere")).unwrap();
        symlink("../../elsewhere", run.join("checkpoints")).unwrap();
        cases.extend([
            ("--timm", "link"),
            ("--timm", "elsewhere"),
            ("--safetensors", "link/model.safetensors"),
            ("--bf16", "file"),
            ("--bf16", "dangling"),
            ("--onnx", "elsewhere/round-7.safetensors"),
            ("--safetensors", "elsewhere/last.safetensors"),
        ]);
    }
    for (format, to) in cases {
        let ran = sandbox.run(&format!("export a {format} {to} --overwrite"));
        ran.failed(2, to.trim_end_matches('/'));
        let after = (files_below(&run), files_below(&other));
        assert!(after == before, "{format} {to}");
    }
    fs::create_dir(sandbox.path("t")).unwrap();
    let twice = sandbox.run("export a --timm t --onnx t/config.json");
    twice.failed(2, "t/config.json; a name of its own");
    assert_eq!(fs::read_dir(sandbox.path("t")).unwrap().count(), 0);
    sandbox.run("export a --safetensors w.safetensors").succeeded().prints("w.safetensors");
}

/// A library that is not one is named, with the variable that named it.
#[test]
fn a_library_that_is_none_is_named() {
    let sandbox = trained("");
    fill(&sandbox.path("pictures"), 3);
    sandbox.run("export a --onnx m.onnx").succeeded().prints("opset 17");
    sandbox.write("libonnxruntime.so", "text");
    let mut command = sandbox.command("index --model m.onnx pictures -o p.index");
    command.env("ANCHORHOOD_ONNXRUNTIME", sandbox.path("libonnxruntime.so"));
    Ran::of(&mut command).failed(1, "ANCHORHOOD_ONNXRUNTIME; cannot be opened");
}
