"""On an NVIDIA GPU, where there is one: the CPU's vectors, tensors that stay there, the command line's bits."""

import shutil
import subprocess
import threading

import numpy as np
import pytest

import anchorhood
from test_embed import command_line


def has_gpu():
    program = shutil.which("nvidia-smi")
    return bool(program) and "GPU" in subprocess.run([program, "-L"], capture_output=True, text=True).stdout


pytestmark = pytest.mark.skipif(not has_gpu(), reason="needs an NVIDIA GPU")


@pytest.fixture(scope="module")
def on_gpu():
    return anchorhood.load("base", device="cuda")


@pytest.mark.parametrize(("precision", "least"), [("f32", 0.99999), ("tf32", 0.999), ("bf16", 0.99)])
def test_vectors_are_the_cpus(pictures, precision, least):
    array, _ = pictures
    there = anchorhood.load("base", device="cuda", precision=precision).embed(array)
    here = anchorhood.load("base", device="cpu").embed(array)
    similar = (np.asarray(there) * here).sum(1)
    assert similar.min() > least, f"{similar.min()}"


def test_it_says_where_it_runs(on_gpu):
    assert "NVIDIA" in on_gpu.device and "NVIDIA" in repr(on_gpu)


def test_tensors_come_back_to_their_device(on_gpu, pictures):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.from_numpy(pictures[0]).permute(0, 3, 1, 2).to("cuda")
    given = on_gpu.embed(tensor)
    assert given.device == tensor.device
    assert np.array_equal(given.cpu().numpy(), on_gpu.embed(pictures[0]))


def test_two_threads_embed_at_once(on_gpu, pictures):
    array, _ = pictures
    expected, results = on_gpu.embed(array), []
    threads = [threading.Thread(target=lambda: results.append(on_gpu.embed(array))) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(results) == 2 and all(np.array_equal(result, expected) for result in results)


def test_training_gives_the_same_bits_as_the_command_line(tmp_path):
    words = "--method and --shapes-train 96 --shapes-test 48 --width 2 --rounds 1 --epochs 2 --device cuda --quiet".split()
    done = command_line("train", "shapes", "--name", "theirs", "--runs", tmp_path, *words)
    assert done.returncode == 0, done.stderr
    ours = anchorhood.train(
        "shapes", "and", name="ours", runs=tmp_path, shapes_train=96, shapes_test=48, width=2, rounds=1, epochs=2, device="cuda", progress=False
    )
    assert ours.model().fingerprint == anchorhood.load(tmp_path / "theirs").fingerprint
