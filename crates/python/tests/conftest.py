"""What tests share: drawn pictures, and a model that was trained for a moment. Skips are counted where `.ci/run` asks for it."""

import os
import subprocess
import sys

import numpy as np
import pytest

import anchorhood
from anchorhood import _native

CLASSES = ("bars", "blocks", "rings")


def draw(kind, seed, side=32):
    """A picture of a class: stripes, squares or rings, in colours of its own."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side] / side
    shift, scale = random.random(2) * 0.3, 4 + 3 * random.random()
    pattern = {
        "bars": np.sin(scale * 2 * np.pi * (x + shift[0])),
        "blocks": np.sign(np.sin(scale * np.pi * (x + shift[0])) * np.sin(scale * np.pi * (y + shift[1]))),
        "rings": np.sin(scale * 4 * np.pi * np.hypot(x - 0.5 + shift[0], y - 0.5 + shift[1])),
    }[kind]
    colours = random.random((2, 3)) * 255
    share = (pattern[..., None] + 1) / 2
    return np.rint(share * colours[0] + (1 - share) * colours[1]).astype(np.uint8)


@pytest.fixture(scope="session")
def pictures():
    """60 pictures of 32×32 in three classes, and their labels."""
    each = [(draw(kind, 100 * c + i), kind) for c, kind in enumerate(CLASSES) for i in range(20)]
    return np.stack([picture for picture, _ in each]), [kind for _, kind in each]


@pytest.fixture(scope="session")
def folder(tmp_path_factory, pictures):
    """The same as PNG files, a sub-folder for each class."""
    place = tmp_path_factory.mktemp("data") / "drawn"
    for i, (picture, kind) in enumerate(zip(*pictures)):
        (place / kind).mkdir(parents=True, exist_ok=True)
        (place / kind / f"{i:02}.png").write_bytes(_native.png(picture))
    return place


@pytest.fixture(scope="session")
def model():
    return anchorhood.load("base")


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A run of a moment on drawn shapes."""
    runs = tmp_path_factory.mktemp("runs")
    return anchorhood.train(
        "shapes", "and", name="short", runs=runs, shapes_train=96, shapes_test=48, width=2, rounds=1, epochs=2, progress=False
    )


#: What a script begins with that presses Ctrl-C on itself. What runs in the background may have been told to ignore it, and Python keeps to
#: that. `answered` gives the seconds that the process has computed since, its threads together: while it works they pass at least as fast as
#: a clock's, and what other programs do to the clock's does not lengthen them.
CTRL_C = """
import os, signal, sys, threading, time
import anchorhood
signal.signal(signal.SIGINT, signal.default_int_handler)
def press():
    global pressed
    pressed = time.process_time()
    os.kill(os.getpid(), signal.SIGINT)
def answered():
    return time.process_time() - pressed
"""


def interrupted(script, *words):
    """What a script says that presses Ctrl-C on itself, a line each."""
    done = subprocess.run([sys.executable, "-c", CTRL_C + script, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


needs_signals = pytest.mark.skipif(os.name != "posix", reason="signals as Unix has them")


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory):
    """Nothing is written into the cache, or among the data, of whoever runs the tests."""
    os.environ["ANCHORHOOD_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data"))


def pytest_runtest_logreport(report):
    """Each skip as a line for `.ci/run`: its name, a tab, why."""
    to = os.environ.get("ANCHORHOOD_SKIPS")
    if report.skipped and to and not hasattr(report, "wasxfail"):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        with open(to, "a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\t{why.removeprefix('Skipped: ')}\n")
