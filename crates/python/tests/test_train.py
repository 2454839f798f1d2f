"""Training from Python: the command line's settings, events and bits."""

import filecmp
import sys

import numpy as np
import pytest

import anchorhood
from anchorhood import _run
from conftest import interrupted, needs_signals
from test_embed import Fails, command_line

SHORT = {"width": 2, "epochs": 1, "rounds": 0, "progress": False}


def test_a_run_has_metrics_a_plot_a_report_and_a_model(run):
    assert run.finished and run.path.name == "short" and 0 <= run.accuracy <= 1
    assert run.config["training.epochs"] == "2" and run.config["method.name"] == "and"
    assert str(run.plot()).startswith("<svg") and "<svg" in run._repr_html_()
    assert "<iframe" in run.report()._repr_html_() and run.report().path.is_file()
    assert run.model().embed(np.zeros((1, 32, 32, 3), np.uint8)).shape == (1, 128)
    assert "short" in repr(run) and "kNN" in str(run)


def test_a_model_may_be_given_larger_pictures_than_it_learnt_with(run, pictures, tmp_path):
    assert run.model_accuracy == run.accuracy
    array, labels = pictures
    larger = anchorhood.train(array, "simclr", labels=labels, runs=tmp_path, held_out=0.25, size=16, **SHORT)
    assert larger.model().size == 20 and 0 <= larger.model_accuracy <= 1
    (judged,) = [event for event in larger.events if event.get("of") == "model"]
    assert judged["size"] == 20 and judged["top1"] == larger.model_accuracy


@pytest.mark.parametrize("library", ["pandas", "polars", None])
def test_metrics_are_a_data_frame_of_what_is_installed(run, library, monkeypatch):
    if library:
        pytest.importorskip(library)
    for other in {"pandas", "polars"} - {library}:
        monkeypatch.setitem(sys.modules, other, None)
    metrics = run.metrics
    assert type(metrics).__module__.split(".")[0] == (library or "builtins")
    rows = metrics if library is None else metrics.to_dict("records") if library == "pandas" else metrics.rows(named=True)
    assert [(row["round"], row["epoch"]) for row in rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert all(row["loss"] > 0 for row in rows) and rows[-1]["knn"] == run.accuracy


def test_a_late_first_judgement_is_a_number_in_every_data_frame():
    polars = pytest.importorskip("polars")
    rows = [{"epoch": epoch, "knn": None if epoch < 300 else 0.5} for epoch in range(301)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pandas", None)
        assert _run._frame(rows)["knn"].dtype == polars.Float64


def test_the_same_bits_as_the_command_line(run, tmp_path):
    done = command_line(
        *"train shapes --method and --name short --shapes-train 96 --shapes-test 48 --width 2 --rounds 1 --epochs 2 --quiet".split(),
        "--runs",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    theirs = anchorhood.load(tmp_path / "short")
    assert theirs.fingerprint == run.model().fingerprint
    ours, others = run.model().state_dict(), theirs.state_dict()
    assert all(np.array_equal(np.asarray(ours[name]), np.asarray(others[name])) for name in ours)
    assert filecmp.cmp(run.path / "config.toml", tmp_path / "short" / "config.toml", shallow=False)


def test_settings_are_explained(tmp_path):
    explained = anchorhood.explain("shapes", epochs=3, width=2, shapes_train=64)
    assert explained["training.epochs"] == ("3", "asked for")
    assert explained["training.batch"] == ("32", "preset quick")
    photos = np.random.default_rng(0).integers(0, 256, (64, 16, 16, 3), np.uint8)
    assert anchorhood.explain(photos, minutes=1, width=2)["training.epochs"][1] == "time"
    for wrong in ({"epochs": 3, "minutes": 1}, {"minutes": -1}, {"epochs": "many"}, {"preset": "fast"}):
        with pytest.raises(anchorhood.InputError):
            anchorhood.explain("shapes", **wrong)


def test_warnings_are_pythons(tmp_path, monkeypatch):
    folder = tmp_path / "photos"
    folder.mkdir()
    for i in range(16):
        (folder / f"{i}.png").write_bytes(anchorhood._native.png(np.full((16, 16, 3), 15 * i, np.uint8)))
    (folder / "broken.png").write_bytes(b"no image")
    with pytest.warns(anchorhood.AnchorhoodWarning, match="broken.png"):
        anchorhood.train(folder, "and", runs=tmp_path, size=16, **SHORT)


def test_callbacks_hear_everything_in_order(tmp_path):
    heard = []
    anchorhood.train("shapes", "and", heard.append, runs=tmp_path, shapes_train=64, shapes_test=16, **SHORT)
    names = [event["event"] for event in heard]
    assert names.index("run_started") < names.index("epoch_ended") < names.index("run_ended")
    assert heard[names.index("run_started")]["pictures"] == 64


def test_an_exception_of_a_callback_saves_and_is_raised(tmp_path):
    def refuse(event):
        if event["event"] == "epoch_ended":
            raise ZeroDivisionError("enough")

    with pytest.raises(ZeroDivisionError, match="enough"):
        anchorhood.train("shapes", "and", refuse, name="a", runs=tmp_path, shapes_train=512, shapes_test=16, **{**SHORT, "epochs": 50})
    stopped = anchorhood.Run(tmp_path / "a")
    assert not stopped.finished and (tmp_path / "a" / "checkpoints" / "last.safetensors").is_file()


@needs_signals
def test_ctrl_c_saves_and_returns_the_run_within_a_second(tmp_path):
    script = """
def hear(event):
    if event["event"] == "epoch_ended" and event["epoch"] == 0:
        threading.Timer(0.1, press).start()
run = anchorhood.train("shapes", "and", hear, name="a", runs=sys.argv[1], shapes_train=4096, shapes_test=16, width=2, epochs=500, progress=False)
print(answered(), run.finished, (run.path / "checkpoints" / "last.safetensors").is_file())
"""
    (line,) = interrupted(script, tmp_path)
    took, finished, saved = line.split()
    assert float(took) < 1 and (finished, saved) == ("False", "True")


def test_a_run_that_was_broken_off_goes_on_to_the_same_bits(tmp_path, pictures):
    array, labels = pictures
    settings = {"labels": labels, "runs": tmp_path, "width": 2, "rounds": 0, "epochs": 3, "batch": 16, "progress": False}
    whole = anchorhood.train(array, "and", name="whole", **settings)

    def stop(event):
        if event["event"] == "epoch_ended" and event["epoch"] == 0:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        anchorhood.train(array, "and", stop, name="part", **settings)
    resumed = anchorhood.Run(tmp_path / "part").resume(array, labels=labels, progress=False)
    assert resumed.finished and resumed.model().fingerprint == whole.model().fingerprint
    assert resumed.accuracy == whole.accuracy


class Drawn:
    """A data set as torch's are, of pictures of several sizes."""

    classes = ["a", "b"]

    def __len__(self):
        return 24

    def __getitem__(self, i):
        from conftest import draw

        return draw(("bars", "rings")[i % 2], i, 24 + i % 3), i % 2


def test_pictures_of_ones_own(tmp_path, pictures):
    array, labels = pictures
    heard = []
    anchorhood.train(array, "and", heard.append, labels=labels, runs=tmp_path, held_out=0.25, size=16, **SHORT)
    begun = next(event for event in heard if event["event"] == "run_started")
    assert (begun["pictures"], begun["test_pictures"], begun["size"]) == (45, 15, 16)
    anchorhood.train(array[:40], "and", heard.append, labels=labels[:40], test=(array[40:], labels[40:]), runs=tmp_path, **SHORT)
    begun = [event for event in heard if event["event"] == "run_started"][-1]
    assert (begun["pictures"], begun["test_pictures"]) == (40, 20)
    unjudged = anchorhood.train(array, "and", runs=tmp_path, **SHORT)
    assert unjudged.accuracy is None
    judged = anchorhood.train(Drawn(), "and", runs=tmp_path, size=24, **SHORT)
    assert judged.accuracy is not None
    with pytest.raises(anchorhood.InputError, match="3 sizes came.*size="):
        anchorhood.train(Drawn(), "and", runs=tmp_path, **SHORT)
    with pytest.raises(anchorhood.PictureError, match="item 4 of a Fails"):
        anchorhood.train(Fails(), "and", runs=tmp_path, **SHORT)


def test_settings_are_the_command_lines():
    names = anchorhood.settings()
    assert {"epochs", "lr", "crop_scale", "method", "seed", "device"} <= set(names)
    told = command_line("train", "--help").stdout
    assert all(f"--{name.replace('_', '-')}" in told for name in names)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"epoch": 3}, "did you mean `epochs`"),
        ({"xyzzy": 3}, "is no setting"),
        ({"epochs": 0}, "training.epochs"),
        ({"epochs": "three"}, "three"),
        ({"method": "magic"}, "magic"),
        ({"data": "no/such/folder"}, "no/such/folder"),
        ({"data": "no/a--size/--limit.d"}, "no/a--size/--limit.d"),
        ({"data": "shapes", "method": "byol", "knn_features": "memory"}, "^knn_features says .* leave knn_features out"),
        ({"data": []}, "no picture came"),
        ({"data": ["a.png", "b.png"]}, "lists the files"),
        ({"data": np.zeros((4, 8, 8, 3), np.int32)}, "int32"),
        ({"data": np.zeros((4, 8, 8, 3), np.uint8), "labels": ["a"]}, "1 labels for 4 pictures"),
        ({"data": np.zeros((4, 8, 8, 3), np.uint8), "test": 3}, "test: give"),
        ({"data": "shapes", "labels": ["a"]}, "labels and test"),
        ({"resume": "nobody"}, "no run called"),
        ({"callbacks": [3]}, "cannot be called"),
    ],
)
def test_what_cannot_be_trained(given, says, tmp_path):
    with pytest.raises(anchorhood.AnchorhoodError, match=says):
        anchorhood.train(**{"runs": tmp_path, "progress": False, **given})
    assert not list(tmp_path.iterdir()), "nothing is left behind"


def test_runs_that_are_none(tmp_path, run):
    with pytest.raises(anchorhood.AnchorhoodError):
        anchorhood.Run(tmp_path)
    with pytest.raises(anchorhood.InputError, match="no run called"):
        anchorhood.load(tmp_path / "x")


def test_aliases_lists_and_pairs(tmp_path):
    made = anchorhood.train(
        "shapes", "and", runs=tmp_path, shapes_train=64, shapes_test=16, learning_rate=0.5, milestones=[0.5, 0.9], crop_scale=(0.3, 1), **SHORT
    )
    config = made.config
    assert (config["training.learning_rate"], config["training.milestones"]) == ("0.5", "0.5,0.9")
    assert config["augmentation.crop_scale"] == "0.3,1"
