"""Pictures of every kind to vectors: the same bits, whatever they come as."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import anchorhood
from anchorhood import _native
from conftest import interrupted, needs_signals


def test_three_lines(folder):
    model = anchorhood.load("base")
    features = model.embed(folder)
    assert features.shape == (60, model.dim) and features.dtype == np.float32
    assert np.allclose(np.linalg.norm(features, axis=1), 1, atol=1e-5)
    assert features.names[0] == "bars/00.png" and features.labels[:2] == ["bars", "bars"]
    assert "data:image/png" in features._repr_html_()
    assert features[:3].names is None and type(features @ features.T) is not None


def test_every_kind_gives_the_same_bits(model, folder, pictures):
    array, _ = pictures
    expected = model.embed(array)
    files = sorted(folder.rglob("*.png"), key=lambda path: path.name)
    assert np.array_equal(model.embed(files), expected)
    assert np.array_equal(model.embed([str(path) for path in files]), expected)
    assert np.array_equal(model.embed(np.array([str(path) for path in files])), expected)
    assert np.array_equal(model.embed(list(array)), expected)
    assert np.array_equal(model.embed(array / 255.0), expected), "floats from 0 to 1 are the bytes that they were"
    assert np.array_equal(model.embed((array / np.float32(255)).astype(np.float16)), expected)
    assert np.array_equal(model.embed(files[0])[0], expected[0])
    assert np.array_equal(model.embed(folder)[np.argsort([n.split("/")[1] for n in model.embed(folder).names])], expected)


@pytest.mark.parametrize("batch", [1, 7, 60, 500])
def test_the_batch_changes_nothing(model, pictures, batch):
    array, _ = pictures
    assert np.array_equal(model.embed(array, batch=batch), model.embed(array))


def test_pictures_of_pil(model, pictures):
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    array, _ = pictures
    opened = [Image.fromarray(picture) for picture in array]
    assert np.array_equal(model.embed(opened), model.embed(array))
    assert np.array_equal(model.embed(opened[3])[0], model.embed(array)[3])
    grey = opened[0].convert("L")
    assert np.array_equal(model.embed(grey), model.embed(grey.convert("RGB")))


def test_greys_are_pictures(model, pictures):
    grey = pictures[0][..., :1]
    assert np.array_equal(model.embed(grey), model.embed(grey.repeat(3, -1)))


def test_the_same_bits_as_the_command_line(model, folder, tmp_path):
    out = tmp_path / "v.npy"
    done = command_line("embed", folder, "-o", out, "--quiet")
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(out), model.embed(folder))


def test_a_layer_below(model, pictures):
    array, _ = pictures
    features = model.embed(array, layer="conv3")
    assert features.shape == (60, 2 * model.width)
    with pytest.raises(anchorhood.InputError, match="conv9"):
        model.embed(array, layer="conv9")


def test_contiguous_arrays_are_not_copied(model):
    """The bytes are read where they lie: another thread that changes them changes the result, and no memory is taken for them."""
    array = np.zeros((4000, model.size, model.size, 3), np.uint8)
    before = resident()
    stop = threading.Event()
    most = [before]

    def watch():
        while not stop.wait(0.002):
            most[0] = max(most[0], resident())

    model.embed(array[:128])
    most[0] = before = resident()
    watcher = threading.Thread(target=watch)
    watcher.start()
    model.embed(array[:2000])
    stop.set()
    watcher.join()
    assert most[0] - before < 0.5 * array[:2000].nbytes, f"{most[0] - before} bytes for {array[:2000].nbytes}"


def test_no_leak_over_many_embeds(model, pictures):
    one = pictures[0][:1]
    for _ in range(100):
        model.embed(one)
    before = resident()
    for _ in range(1000):
        model.embed(one)
    grown = resident() - before
    assert grown < 4 << 20, f"{grown} bytes"


def test_two_threads_embed_at_once(model, pictures):
    array, _ = pictures
    expected, results = model.embed(array), [None, None]

    def work(i):
        results[i] = [model.embed(array) for _ in range(5)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for result in results:
        assert all(np.array_equal(one, expected) for one in result)


def test_other_threads_of_python_run_meanwhile(model):
    array = np.zeros((512, 64, 64, 3), np.uint8)
    model.embed(array[:128])
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    began = time.perf_counter()
    model.embed(array)
    took, seen = time.perf_counter() - began, counted[0]
    stop.set()
    thread.join()
    assert seen > 20 * took, f"{seen} turns in {took:.2f} s: the GIL was held"


@needs_signals
def test_ctrl_c_works_within_a_second():
    """Also in the middle of a batch that takes longer."""
    script = """
import numpy
model = anchorhood.load("base")
threading.Timer(1.0, press).start()
try:
    model.embed(numpy.zeros((10_240, 64, 64, 3), numpy.uint8), batch=1024)
except KeyboardInterrupt:
    print(answered(), flush=True)
    os._exit(0)
"""
    (took,) = interrupted(script)
    assert float(took) < 1


# ---- what cannot be ----


@pytest.mark.parametrize(
    ("x", "says"),
    [
        (np.zeros((2, 8, 8, 3), np.int64), "int64.*uint8"),
        (np.zeros((2, 8, 8, 3), bool), "bool.*uint8"),
        (np.full((2, 8, 8, 3), 255.0), "from 255 to 255.*0 to 1"),
        (np.full((2, 8, 8, 3), -0.1), "undo a normalisation"),
        (np.full((2, 8, 8, 3), np.nan), "nan"),
        (np.zeros((2, 3, 8, 8), np.uint8), r"\(2, 3, 8, 8\).*transpose"),
        (np.zeros((2, 8, 8, 4), np.uint8), r"fourth channel"),
        (np.zeros((8, 8, 3), np.uint8), r"x\[None\]"),
        (np.zeros((8, 8), np.uint8), r"\(8, 8\).*N×H×W×3"),
        (np.zeros((0, 8, 8, 3), np.uint8), "without a picture"),
        (np.zeros((2, 0, 8, 3), np.uint8), "without a pixel"),
        ([], "empty list"),
        ((), "empty list"),
        (7, "a int came"),
        (None, "a NoneType came"),
        ([np.zeros((8, 8, 3), np.uint8), "a.png"], "one kind"),
        ([object()], "no picture"),
        (iter([]), "at least one"),
    ],
)
def test_what_is_no_pictures_is_told_with_what_came(model, x, says):
    with pytest.raises(anchorhood.InputError, match=says):
        model.embed(x)


@pytest.mark.parametrize("batch", [0, -1, 2.5, "8", True])
def test_a_batch_is_a_whole_number(model, pictures, batch):
    with pytest.raises(anchorhood.InputError, match="batch="):
        model.embed(pictures[0], batch=batch)


def test_files_that_are_no_pictures(model, folder, tmp_path):
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no picture")
    good = next(folder.rglob("*.png"))
    with pytest.raises(anchorhood.PictureError, match="bad.png: cannot be used as a picture"):
        model.embed([good, bad])
    with pytest.raises(anchorhood.PictureError, match="gone.png"):
        model.embed(tmp_path / "gone.png")
    with pytest.raises(anchorhood.PictureError, match="none of its 1 pictures"):
        model.embed(tmp_path)
    (tmp_path / "good.png").write_bytes(good.read_bytes())
    with pytest.warns(UserWarning, match="bad.png: skipped"):
        assert len(model.embed(tmp_path)) == 1
    with pytest.raises(anchorhood.AnchorhoodError, match="no pictures|empty|there is no"):
        (tmp_path / "empty").mkdir()
        model.embed(tmp_path / "empty")


class Fails:
    """A data set that raises in its middle."""

    def __len__(self):
        return 10

    def __getitem__(self, i):
        if i == 4:
            raise OSError("the disk is gone")
        return np.zeros((8, 8, 3), np.uint8), 0


def test_a_data_set_that_raises_in_its_middle(model):
    with pytest.raises(anchorhood.PictureError, match="item 4 of a Fails .*OSError: the disk is gone") as raised:
        model.embed(Fails())
    assert isinstance(raised.value.__cause__, OSError)


@pytest.mark.parametrize(
    ("word", "says"),
    [("no-such-model", "no run called"), ("torchvision-resnet18", "model fetch"), ("", "no run called")],
)
def test_models_that_are_not_there(word, says, tmp_path, monkeypatch):
    monkeypatch.setenv("ANCHORHOOD_CACHE", str(tmp_path))
    with pytest.raises(anchorhood.InputError, match=says):
        anchorhood.load(word)


def test_devices_that_are_not_there():
    with pytest.raises(anchorhood.InputError, match="toaster"):
        anchorhood.load("base", device="toaster")
    with pytest.raises(anchorhood.AnchorhoodError):
        anchorhood.load("base", device="cuda:99")
    with pytest.raises(anchorhood.InputError, match="threads"):
        anchorhood.load("base", threads=-1)


FORK = """
import os, sys, numpy, anchorhood
worked = sys.argv[1] == "worked"
x = numpy.zeros((1, 64, 64, 3), numpy.uint8)
model = anchorhood.load("base") if worked else None
child = os.fork()
if child == 0:
    try:
        (model or anchorhood.load("base")).embed(x)
        os._exit(0)
    except anchorhood.WorkError as error:
        assert "spawn" in str(error)
        os._exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.parametrize(("before", "code"), [("imported", "0"), ("worked", "5")])
def test_a_fork_after_import_works_and_one_after_work_is_told(before, code):
    done = subprocess.run([sys.executable, "-c", FORK, before], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == code, done.stderr


def test_a_missing_compiled_part_is_a_sentence(tmp_path):
    """As of a wheel for another platform."""
    package = os.path.dirname(anchorhood.__file__)
    os.makedirs(tmp_path / "anchorhood")
    for name in os.listdir(package):
        if name.endswith(".py"):
            (tmp_path / "anchorhood" / name).write_text(open(os.path.join(package, name), encoding="utf-8").read(), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", "import anchorhood"], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert done.returncode == 1
    assert "no compiled part here for" in done.stderr and "pip install ." in done.stderr


# ---- the command line in the wheel ----


def command_line(*words):
    return subprocess.run(
        [sys.executable, "-m", "anchorhood", *map(str, words)], capture_output=True, text=True, timeout=300
    )


def test_the_command_line_is_in_the_wheel():
    done = command_line("--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"anchorhood {anchorhood.__version__}")
    script = os.path.join(os.path.dirname(sys.executable), "anchorhood")
    done = subprocess.run([script, "model", "list"], capture_output=True, text=True)
    assert done.returncode == 0 and "base" in done.stdout
    done = command_line("embed", "/no/such/folder", "-o", "x.npy")
    assert done.returncode == 2 and done.stderr.startswith("error: ")
    done = command_line("no-such-command")
    assert done.returncode == 2 and "no-such-command" in done.stderr


def resident():
    """Bytes of this process in memory."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        pytest.skip("what a process holds is looked up in /proc")
