"""What the commands do besides training, embedding and searching: moving copies, exporting, comparing, reproducing, data sets, pages."""

import functools
import hashlib
import shutil
import threading
import urllib.request
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import anchorhood
from anchorhood import _native, data

TINY = {"shapes_train": 48, "shapes_test": 16, "size": 16, "width": 2, "batch": 16, "rounds": 0}


def with_a_copy(tmp_path):
    """Pictures that have nothing in common, and a copy of one."""
    place = tmp_path / "own"
    place.mkdir()
    for seed in range(6):
        squares = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), np.uint8)
        (place / f"{seed}.png").write_bytes(_native.png(squares.repeat(8, 0).repeat(8, 1)))
    shutil.copy(place / "0.png", place / "copy.png")
    return place


def test_copies_are_moved_and_put_back(tmp_path):
    place = with_a_copy(tmp_path)
    before = sorted(place.rglob("*.png"))
    copies = anchorhood.Index.build(place, tmp_path / "own.index").duplicates()
    aside = tmp_path / "copies"
    would = copies.move_to(aside, dry_run=True)
    assert len(would.moved) == 1 and would.record is None and not aside.exists()
    moves = copies.move_to(aside)
    assert moves.moved == would.moved and moves.left == []
    (source, target), = moves.moved
    assert target.is_file() and not source.exists()
    assert anchorhood.undo_moves(moves.record) == (1, 0, [])
    assert sorted(place.rglob("*.png")) == before
    assert anchorhood.undo_moves(moves.record) == (0, 1, [])
    with pytest.raises(anchorhood.AnchorhoodError):
        anchorhood.undo_moves(tmp_path / "nowhere.jsonl")


def test_a_changed_copy_is_left_with_a_warning(tmp_path):
    place = with_a_copy(tmp_path)
    copies = anchorhood.Index.build(place, tmp_path / "own.index").duplicates()
    moved = copies.move_to(tmp_path / "copies", dry_run=True).moved[0][0]
    moved.write_bytes(b"something else")
    with pytest.warns(anchorhood.AnchorhoodWarning, match="not moved"):
        moves = copies.move_to(tmp_path / "copies")
    assert moves.moved == [] and moved.exists()


def test_a_model_is_exported(model, pictures, tmp_path):
    small, weights = tmp_path / "small.safetensors", tmp_path / "weights.safetensors"
    said = model.export(bf16=small, safetensors=weights, size=64)
    assert len(said) == 2 and small.is_file() and weights.is_file()
    again = anchorhood.load(small)
    assert (again.size, again.dim) == (64, model.dim)
    with pytest.raises(anchorhood.InputError, match="overwrite"):
        model.export(bf16=small)
    with pytest.raises(anchorhood.InputError, match="at least one"):
        model.export()
    with pytest.raises(anchorhood.AnchorhoodError):  # it is not as wide as published
        model.export(timm=tmp_path / "timm")


def test_methods_are_compared_and_trained_once(tmp_path):
    heard = []
    found = anchorhood.compare(["and", "simclr"], "shapes", heard.append, view_epochs=2, runs=tmp_path, **TINY)
    assert {line["method"] for line in found["methods"]} == {"and", "simclr"}
    assert "simclr" in str(found) and (found.path / "comparison.md").is_file()
    assert any(event["event"] == "epoch_ended" for event in heard)
    heard.clear()
    again = anchorhood.compare(["and", "simclr"], "shapes", heard.append, view_epochs=2, runs=tmp_path, **TINY)
    assert again == found and not any(event["event"] == "epoch_ended" for event in heard)
    alone = anchorhood.train("shapes", "simclr", runs=tmp_path, name="alone", epochs=1, progress=False, **TINY)
    last = "checkpoints/last.safetensors"
    weights = [anchorhood.load(path / last).state_dict() for path in (found.path / "simclr", alone.path)]
    assert all(np.array_equal(weights[0][name], weights[1][name]) for name in weights[0])
    for given, says in (({"view_epochs": 3}, "view-epochs"), ({}, "minutes"), ({"minutes": 1, "view_epochs": 1}, "either")):
        with pytest.raises(anchorhood.InputError, match=says):
            anchorhood.compare(["and"], "shapes", runs=tmp_path, **given, **TINY)
    with pytest.raises(anchorhood.InputError, match="nonesuch"):
        anchorhood.compare(["nonesuch"], "shapes", view_epochs=1, runs=tmp_path)


def test_an_experiment_is_reproduced(tmp_path):
    (found,) = anchorhood.reproduce("table5", scale="smoke", only=["Instance model"], output=tmp_path, device="cpu")
    assert found["experiment"] == "table5" and (found.path / "results.md").is_file() and "Instance" in str(found)
    assert "table5" in anchorhood.experiments()
    with pytest.raises(anchorhood.InputError, match="no experiment"):
        anchorhood.reproduce("table99", output=tmp_path)
    with pytest.raises(anchorhood.InputError, match="scale"):
        anchorhood.reproduce("table5", scale="huge", output=tmp_path)


def test_where_a_network_looked_and_a_page_written_again(run):
    strips = run.attention([0, 3], layer="conv4", device="cpu")
    assert [strip.number for strip in strips] == [0, 3] and "<img" in strips[0]._repr_html_()
    with pytest.raises(anchorhood.InputError, match="training pictures"):
        run.attention([10_000])
    page = run.report().path
    before = page.stat().st_mtime_ns
    assert run.report(overwrite=True).path == page and page.stat().st_mtime_ns > before


def test_data_sets_are_named_checked_and_packed(folder, tmp_path):
    assert data.sets()["svhn"].fetched and not data.sets()["imagenet"].fetched
    found = data.check(folder)
    assert found.is_whole and sum(there for there, _ in found.splits.values()) == 60
    pack = tmp_path / "drawn.pack"
    packed = data.pack(folder, pack, size=16)
    assert (packed.pictures, packed.size, packed.bytes) == (60, 16, pack.stat().st_size)
    assert data.check(pack).is_whole
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/a.png").write_bytes(b"no picture")
    assert not data.check(tmp_path / "broken").is_whole
    for name, says in (("imagenet", "account"), ("nonesuch", "no data set")):
        with pytest.raises(anchorhood.InputError, match=says):
            data.fetch(name, tmp_path)
    with pytest.raises(anchorhood.InputError, match="checksum"):
        data.fetch_model("https://example.org/a.safetensors")


def test_a_model_is_fetched_and_verified(model, tmp_path, monkeypatch):
    monkeypatch.setenv("ANCHORHOOD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "there").mkdir()
    model.export(bf16=tmp_path / "there/small.safetensors")
    sum_of = hashlib.sha256((tmp_path / "there/small.safetensors").read_bytes()).hexdigest()
    handler = functools.partial(SimpleHTTPRequestHandler, directory=tmp_path / "there")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/small.safetensors"
        with pytest.raises(anchorhood.WorkError, match="SHA-256"):
            data.fetch_model(address, sha256="0" * 64, progress=False)
        file = data.fetch_model(address, sha256=sum_of, progress=False)
        server.shutdown()
    assert anchorhood.load("small").dim == anchorhood.load(file).dim == model.dim


@pytest.mark.parametrize("what", ["folder", "run", "index"])
def test_a_page_shows_folders_runs_and_indices(what, folder, run, tmp_path):
    place = {"folder": folder, "run": run.path, "index": tmp_path / "a.index"}[what]
    if what == "index":
        anchorhood.Index.build(folder, place)
    with anchorhood.serve(place, device="cpu") as server:
        assert urllib.request.urlopen(server.url).status == 200
    with pytest.raises(anchorhood.InputError, match="nowhere"):
        anchorhood.serve(Path("nowhere"))
