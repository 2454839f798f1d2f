"""Indices: made, brought up to date, asked, shown, served."""

import json
import os
import pickle
import shutil
import urllib.error
import urllib.request

import numpy as np
import pytest

import anchorhood
from anchorhood import _native
from conftest import interrupted, needs_signals


@pytest.fixture(scope="session")
def index(folder, tmp_path_factory):
    return anchorhood.Index.build(folder, tmp_path_factory.mktemp("index") / "drawn.index", thumbnails=32)


def test_it_has_names_labels_and_the_models_vectors(index, folder, model):
    assert len(index) == 60 and index.names[0] == "bars/00.png" and index.labels[-1] == "rings"
    assert np.allclose(index.vectors, model.embed(folder), atol=1e-6)


def test_a_picture_finds_itself_first(index, folder, pictures):
    path = folder / "rings" / "45.png"
    hits = index.search(path, k=5)
    assert hits[0].path == path and hits[0].similarity > 0.9999 and hits[0].label == "rings"
    assert [hit.similarity for hit in hits] == sorted((hit.similarity for hit in hits), reverse=True)
    array = pictures[0]
    assert index.search(array[45], k=5) == hits, "an array"
    assert index.search(hits[0].number, k=5) == hits, "a number"
    vector = index.vectors[hits[0].number]
    assert [hit.path for hit in index.search(vector, k=5)] == [hit.path for hit in hits]
    several = index.search([path, folder / "bars" / "01.png"], k=3)
    assert len(several) == 2 and several[0] == hits[:3]
    assert [one[0].number for one in index.search(index.vectors[:4], k=1)] == [0, 1, 2, 3]
    assert len(index.search(array[:3], k=2)) == 3
    assert "data:image/png" in hits._repr_html_() and "data:image/png" in several[0]._repr_html_()


def test_a_saved_one_is_the_same_and_finds_its_model(index, folder, tmp_path):
    again = anchorhood.Index.load(index.path)
    assert again.names == index.names and again.model.path == "base"
    assert again.search(folder / "bars" / "00.png", 4) == index.search(folder / "bars" / "00.png", 4)
    elsewhere = tmp_path / "moved"
    shutil.copytree(folder, elsewhere)
    moved = anchorhood.Index.load(index.path, moved=elsewhere)
    assert moved.search(0, 1)[0].path == elsewhere / "bars" / "00.png"


def test_what_is_added_is_found(folder, pictures, tmp_path):
    one, more = tmp_path / "one", tmp_path / "more"
    shutil.copytree(folder / "bars", one)
    shutil.copytree(folder / "rings", more)
    made = anchorhood.Index.build(one, tmp_path / "some.index")
    assert len(made) == 20
    (one / "new.png").write_bytes(_native.png(pictures[0][30]))
    assert len(made.add()) == 21
    both = anchorhood.Index.load(tmp_path / "some.index").add(more)
    assert len(both) == 41 and any(name.startswith("more/") for name in both.names)
    with pytest.raises(anchorhood.InputError, match="overwrite"):
        anchorhood.Index.build(folder, tmp_path / "some.index")
    assert len(anchorhood.Index.build(folder, tmp_path / "some.index", overwrite=True)) == 60


def test_it_pickles_and_so_does_what_was_found(index, folder, tmp_path):
    query = folder / "bars" / "00.png"
    again = pickle.loads(pickle.dumps(index))
    assert again.names == index.names and again.search(query, 4) == index.search(query, 4)
    for found in (index.search(query, 4), index.cluster(3), index.select(4), index.duplicates()):
        kept = pickle.loads(pickle.dumps(found))
        assert kept == found and kept._repr_html_() == found._repr_html_()
    elsewhere = tmp_path / "moved"
    shutil.copytree(folder, elsewhere)
    moved = anchorhood.Index.load(index.path, moved=elsewhere)
    assert pickle.loads(pickle.dumps(moved)).search(0, 1)[0].path == elsewhere / "bars" / "00.png"


def test_without_a_path_it_is_kept_in_the_cache(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("ANCHORHOOD_CACHE", str(tmp_path))
    made = anchorhood.Index.build([folder])
    assert tmp_path in made.path.parents
    assert "data:image/png" in made._repr_html_()


def test_copies_are_found(folder, pictures, tmp_path):
    place = tmp_path / "copies"
    shutil.copytree(folder / "rings", place)
    shutil.copy(place / "40.png", place / "copy.png")
    (place / "mirrored.png").write_bytes(_native.png(np.ascontiguousarray(pictures[0][41][:, ::-1])))
    made = anchorhood.Index.build(place, tmp_path / "copies.index")
    found = made.duplicates()
    same = {path.name: kind for group in found for path, kind, _ in group.others}
    assert "same file" in same.values()
    assert {"40.png", "copy.png"} & set(same)
    assert "data:image/png" in found._repr_html_()
    against = anchorhood.Index.build(folder, tmp_path / "all.index")
    crossed = made.duplicates(against)
    assert sum(len(group.others) for group in crossed) == 22, "each copy, and the two that were copied again"
    assert all(folder in group.keep.parents for group in crossed)
    with pytest.raises(anchorhood.InputError, match="above=2"):
        made.duplicates(above=2)


def test_a_link_is_no_copy_and_a_decision_is_remembered(tmp_path):
    place = tmp_path / "photos"
    place.mkdir()
    for name in range(40, 44):
        noise = np.random.default_rng(name).integers(0, 256, (48, 64, 3), np.uint8)
        (place / f"{name}.png").write_bytes(_native.png(noise))
    (place / "a link.png").symlink_to("40.png")
    os.link(place / "41.png", place / "hard.png")
    made = anchorhood.Index.build(place, tmp_path / "photos.index")
    assert made.duplicates() == [] and made.duplicates().bursts == []
    shutil.copy(place / "40.png", place / "copy.png")
    made = made.add()
    for keep in ("first-name", ["oldest", "first-name"]):
        (group,) = made.duplicates(keep=keep)
        assert {group.keep.name, group.others[0][0].name} == {"40.png", "copy.png"}
    with pytest.raises(anchorhood.InputError, match="prettiest"):
        made.duplicates(keep="prettiest")
    with pytest.raises(anchorhood.InputError, match="overlap"):
        made.duplicates(anchorhood.Index.load(tmp_path / "photos.index"))
    mine = tmp_path / "mine.jsonl"
    assert made.not_duplicates("40.png", place / "copy.png", decisions=mine)
    assert not made.not_duplicates(made.names.index("copy.png"), "40.png", decisions=mine)
    assert made.duplicates(decisions=mine) == [] and len(made.duplicates()) == 1
    assert made.not_duplicates("40.png", "copy.png") and made.duplicates() == []
    shutil.copytree(place, tmp_path / "again", ignore=lambda _, names: [n for n in names if n != "42.png"])
    beside = anchorhood.Index.build(tmp_path / "again", tmp_path / "again.index")
    (group,) = made.duplicates(beside, decisions=mine)
    assert group.numbers == [len(made), made.names.index("42.png")]
    assert made.not_duplicates(*group.numbers, against=beside, decisions=mine)
    assert made.duplicates(beside, decisions=mine) == []
    for pair in [("40.png", "a link.png"), ("40.png", "nobody.png"), (99, 0), (-1, 0)]:
        with pytest.raises(anchorhood.InputError):
            made.not_duplicates(*pair)


def test_clusters_hold_every_picture_once(index):
    clusters = index.cluster(3)
    assert sorted(i for cluster in clusters for i in cluster.numbers) == list(range(60))
    assert set(clusters.labels) == {0, 1, 2} and "data:image/png" in clusters._repr_html_()
    assert index.cluster(3).labels.tolist() == clusters.labels.tolist()
    groups = index.cluster(method="graph", above=0.5, least=2)
    assert all(len(group.numbers) >= 2 for group in groups)
    with pytest.raises(anchorhood.InputError, match="'kmeans' or 'graph'"):
        index.cluster(method="tree")
    with pytest.raises(anchorhood.InputError, match="61 clusters of 60"):
        index.cluster(61)


def test_chosen_ones_are_diverse_and_not_chosen_twice(index):
    chosen = index.select(5)
    assert len(set(chosen)) == 5 and "data:image/png" in chosen._repr_html_()
    more = index.select(5, already=[index.names[i] for i in chosen.numbers])
    assert not set(more) & set(chosen)
    for already, says in [(["nobody.png"], "nobody.png"), ([60], "no picture 60"), ([-1], "already=-1")]:
        with pytest.raises(anchorhood.InputError, match=says):
            index.select(5, already=already)


def test_it_is_served_while_python_goes_on(index):
    with index.serve() as server:
        page = urllib.request.urlopen(server.url, timeout=20).read().decode()
        assert "<html" in page
        found = json.load(urllib.request.urlopen(f"{server.url}api/run", timeout=20))
        assert found
        assert server.url in server._repr_html_()
        frame = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
        framed = urllib.request.urlopen(urllib.request.Request(server.url, headers=frame), timeout=20)
        assert "frame-ancestors http://127.0.0.1:*" in framed.headers["Content-Security-Policy"], "as a notebook shows it"
        with pytest.raises(anchorhood.AnchorhoodError, match="in use|taken"):
            index.serve(int(server.url.rstrip("/").rsplit(":", 1)[1]))
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        urllib.request.urlopen(server.url, timeout=5)
    with pytest.raises(anchorhood.InputError, match="no address"):
        index.serve(host="nowhere")
    with pytest.raises(anchorhood.InputError, match="token"):
        index.serve(host="0.0.0.0")


@needs_signals
def test_ctrl_c_while_it_is_made_and_the_same_call_goes_on(folder, tmp_path):
    many = tmp_path / "many"
    many.mkdir()
    original = folder / "rings" / "45.png"
    for i in range(640):
        os.link(original, many / f"{i}.png")
    script = """
import pathlib
model = anchorhood.load("base", threads=1)
journal = pathlib.Path(sys.argv[3])
def watch():
    while not journal.exists():
        time.sleep(0.01)
    press()
threading.Thread(target=watch).start()
build = lambda: anchorhood.Index.build(sys.argv[1], sys.argv[2], model)
try:
    build()
except KeyboardInterrupt:
    print(answered(), journal.exists())
    print(len(build()), journal.exists())
"""
    stopped, went_on = interrupted(script, many, tmp_path / "many.index", tmp_path / ".many.index.journal")
    took, journal = stopped.split()
    assert float(took) < 1 and journal == "True" and went_on == "640 False"


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ([], "empty list"),
        (60, "no picture 60"),
        (-1, "query=-1"),
        (np.zeros(7, np.float32), "7 values.*256"),
        (np.zeros((4, 4, 2), np.uint8), "H×W×3"),
    ],
)
def test_queries_that_cannot_be(index, query, says):
    with pytest.raises(anchorhood.InputError, match=says):
        index.search(query)


def test_indices_that_cannot_be(index, run, folder, tmp_path):
    with pytest.raises(anchorhood.AnchorhoodError, match="gone.index"):
        anchorhood.Index.load(tmp_path / "gone.index")
    (tmp_path / "bad.index").write_bytes(b"no index")
    with pytest.raises(anchorhood.AnchorhoodError, match="bad.index"):
        anchorhood.Index.load(tmp_path / "bad.index")
    with pytest.raises(anchorhood.InputError, match="another model"):
        anchorhood.Index.load(index.path, model=run.model())
    with pytest.raises(anchorhood.AnchorhoodError, match="nowhere"):
        anchorhood.Index.build(tmp_path / "nowhere", tmp_path / "x.index")
    with pytest.raises(anchorhood.InputError, match="empty list"):
        anchorhood.Index.build([], tmp_path / "x.index")
    with pytest.raises(anchorhood.InputError, match="k=0"):
        index.search(0, k=0)


def test_outliers_are_named(index, tmp_path):
    odd = index.outliers(5)
    assert len(odd) == 5 and odd[0].path == index._native.picture(odd[0].number)
    assert [one.score for one in odd] == sorted((one.score for one in odd), reverse=True)
    dark = index.outliers(3, by="dark")
    brightness = [one.score for one in index.outliers(60, by="bright")]
    assert dark[0].score == min(brightness) and "<img" in dark._repr_html_()
    with pytest.raises(anchorhood.InputError, match="blurry"):
        index.outliers(by="ugly")


def test_a_few_labels_are_carried_to_all(index, tmp_path):
    given = {index.names[i]: index.labels[i] for i in range(0, 60, 5)}
    guesses = index.classify(given)
    assert len(guesses) == 60 and guesses[0].confidence == 1
    assert np.mean([a == b for a, b in zip(guesses.labels, index.labels)]) > 0.8
    assert index.classify({i: index.labels[i] for i in range(0, 60, 5)}) == guesses, "by number"
    each = [index.labels[i] if i % 5 == 0 else None for i in range(60)]
    assert index.classify(each) == guesses, "one for each"
    file = tmp_path / "labels.csv"
    file.write_text("path,label\n" + "".join(f"{name},{label}\n" for name, label in given.items()))
    assert [g.label for g in index.classify(file)] == guesses.labels
    assert 0.5 < guesses.right <= 1
    for wrong in (["a"], {"nowhere.png": "a"}, [None] * 60):
        with pytest.raises(anchorhood.InputError):
            index.classify(wrong)
    with pytest.raises(anchorhood.InputError, match="logistic"):
        index.classify(given, by="magic")


def test_wrong_labels_are_found(index):
    labels = list(index.labels)
    labels[3], labels[45] = "rings", "bars"
    found = index.wrong_labels(labels)
    assert {found[0].number, found[1].number} == {3, 45}
    assert found[0].given != found[0].likely == index.labels[found[0].number]
    assert len(index.wrong_labels()) <= len(found), "the sub-folders'"


def test_a_model_is_judged(model, pictures, folder):
    array, labels = pictures
    vectors, pixels = anchorhood.evaluate(model, folder, k=5)
    assert 0 <= pixels <= vectors <= 1
    again = anchorhood.evaluate("base", array[::2], labels=labels[::2], test=(array[1::2], labels[1::2]), k=5)
    assert again[0] > 0.6
    with pytest.raises(anchorhood.InputError):
        anchorhood.evaluate(model, folder, k=0)
