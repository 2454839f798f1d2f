"""What other libraries do with it: scikit-learn, faiss, torch, ONNX Runtime, pickle, notebooks, type checkers."""

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import anchorhood
from anchorhood import _native, _pictures

ROOT = Path(__file__).parents[3]


def needs(module, name=None):
    return pytest.importorskip(module, reason=f"{name or module} is not installed")


def test_a_model_pickles(model, pictures):
    again = pickle.loads(pickle.dumps(model))
    assert again.fingerprint == model.fingerprint
    assert np.array_equal(again.embed(pictures[0]), model.embed(pictures[0]))


def test_a_pickle_of_a_model_that_is_another_now_is_told(run, tmp_path):
    file = tmp_path / "model.safetensors"
    shutil.copy(run.path / "checkpoints" / "last.safetensors", file)
    kept = pickle.dumps(anchorhood.load(file))
    assert pickle.loads(kept).fingerprint == run.model().fingerprint
    shutil.copy(ROOT / "crates/index/base/base.safetensors", file)
    with pytest.raises(anchorhood.InputError, match="model.safetensors: is another model now"):
        pickle.loads(kept)


def test_a_model_is_shown_by_its_first_layer(model):
    shown = model._repr_html_()
    assert "data:image/png" in shown and "resnet18 of width 32" in shown


@pytest.mark.parametrize("method", ["colour", "split-brain"])
def test_so_is_one_that_does_not_see_red_green_and_blue(method, tmp_path):
    words = {"shapes_train": 32, "shapes_test": 16, "width": 4, "rounds": 0, "epochs": 1, "batch": 16, "progress": False}
    made = anchorhood.train("shapes", method, runs=tmp_path, **words).model()
    assert "data:image/png" in made._repr_html_() and made.embed(np.zeros((1, 32, 32, 3), np.uint8)).shape == (1, made.dim)


def test_features_into_logistic_regression(model, pictures):
    LogisticRegression = needs("sklearn.linear_model", "scikit-learn").LogisticRegression
    array, labels = pictures
    odd = np.arange(len(array)) % 2 == 1
    features = model.embed(array)
    score = LogisticRegression(C=100, max_iter=500).fit(features[odd], np.array(labels)[odd]).score(features[~odd], np.array(labels)[~odd])
    assert score > 0.8, score


def test_features_into_faiss(model, pictures):
    faiss = needs("faiss")
    features = model.embed(pictures[0])
    index = faiss.IndexFlatIP(features.shape[1])
    index.add(features)
    similar, nearest = index.search(features[:10], 3)
    assert nearest[:, 0].tolist() == list(range(10)) and np.allclose(similar[:, 0], 1, atol=1e-5)
    index = faiss.IndexFlatIP(features.shape[1])
    index.add(np.asarray(features))
    assert index.ntotal == len(features)


def test_tensors_come_back_as_tensors(model, pictures):
    torch = needs("torch")
    array = pictures[0]
    expected = model.embed(array)
    tensor = torch.from_numpy(array).permute(0, 3, 1, 2).contiguous()
    given = model.embed(tensor)
    assert isinstance(given, torch.Tensor) and np.array_equal(given.numpy(), expected)
    channels_last = tensor.contiguous(memory_format=torch.channels_last)
    assert np.array_equal(model.embed(channels_last).numpy(), expected)
    assert np.array_equal(model.embed(tensor.float() / 255).numpy(), expected)
    assert np.array_equal(model.embed(tensor.permute(0, 2, 3, 1)).numpy(), expected), "N×H×W×3, which alone fits"
    assert np.array_equal(model.embed(list(tensor)), expected)
    assert torch.from_dlpack(expected).shape == given.shape
    with pytest.raises(anchorhood.InputError, match="0 to 1"):
        model.embed(tensor.float())


def test_tensors_share_their_memory_both_ways(model, pictures):
    torch = needs("torch")
    array = pictures[0]
    rows = torch.from_numpy(array)
    channels_last = rows.permute(0, 3, 1, 2)
    for given in (array, rows, channels_last):
        assert np.shares_memory(_pictures.batch_of(given), array), "read where it lies"

    class OfAnotherLibrary:
        """An array that speaks DLPack and nothing else."""

        def __dlpack__(self, **words):
            return rows.__dlpack__()

        def __dlpack_device__(self):
            return rows.__dlpack_device__()

    assert np.shares_memory(_pictures.batch_of(OfAnotherLibrary()), array)
    features = model.embed(OfAnotherLibrary())
    assert np.array_equal(features, model.embed(array))
    assert torch.from_dlpack(features).data_ptr() == features.ctypes.data
    assert torch.from_numpy(features).data_ptr() == features.ctypes.data
    given = model.embed(rows)
    assert np.from_dlpack(given).ctypes.data == given.data_ptr()


def test_data_sets_and_loaders_of_torch(model, pictures):
    torch = needs("torch")
    array, labels = pictures
    classes = sorted(set(labels))

    class Own(torch.utils.data.Dataset):
        def __init__(self):
            self.classes = classes

        def __len__(self):
            return len(array)

        def __getitem__(self, i):
            return torch.from_numpy(array[i]).permute(2, 0, 1), classes.index(labels[i])

    expected = model.embed(array)
    of_set = model.embed(Own(), batch=16)
    assert np.array_equal(of_set, expected) and of_set.labels == labels
    loader = torch.utils.data.DataLoader(Own(), batch_size=7)
    of_loader = model.embed(loader)
    assert np.array_equal(of_loader, expected) and of_loader.labels == labels
    bare = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.from_numpy(array).permute(0, 3, 1, 2)), batch_size=32)
    assert np.array_equal(model.embed(bare), expected)

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(torch.from_numpy(array).permute(0, 3, 1, 2))

    assert np.array_equal(model.embed(Stream()), expected)

    class Breaks(Own):
        def __getitem__(self, i):
            if i == 9:
                raise ValueError("a bad row")
            return super().__getitem__(i)

    with pytest.raises(anchorhood.PictureError, match="batch 1 of a DataLoader .*a bad row"):
        model.embed(torch.utils.data.DataLoader(Breaks(), batch_size=7))


def backbone(model):
    """torchvision's ResNet-18 at the model's width, below its last layer: what docs/how-to/python.md shows."""
    torch, resnet = needs("torch"), needs("torchvision.models.resnet", "torchvision")
    net = resnet.ResNet(resnet.BasicBlock, [2, 2, 2, 2])
    net.inplanes = width = model.width
    net.conv1 = torch.nn.Conv2d(3, width, 3, 2, 1, bias=False)
    net.bn1 = torch.nn.BatchNorm2d(width)
    net.maxpool = torch.nn.Identity()
    for i, stride in enumerate((1, 2, 2, 2)):
        setattr(net, f"layer{i + 1}", net._make_layer(resnet.BasicBlock, width << i, 2, stride))
    net.fc = torch.nn.Linear(8 * width, model.dim)
    net.load_state_dict(model.state_dict())
    return net


def test_a_frozen_backbone_in_a_training_loop_of_torch(model, pictures):
    torch = needs("torch")
    net = backbone(model).eval().requires_grad_(False)
    array, labels = pictures
    classes = sorted(set(labels))
    native = _resized(array, model.size)
    pixels = torch.from_numpy(native).permute(0, 3, 1, 2).float() / 255
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (model.mean, model.std))
    features = torch.nn.functional.normalize(net((pixels - mean) / std))
    assert torch.allclose(features, torch.from_numpy(np.asarray(model.embed(array))), atol=1e-5)
    head = torch.nn.Linear(features.shape[1], 3)
    optimiser = torch.optim.Adam(head.parameters(), 0.1)
    target = torch.tensor([classes.index(label) for label in labels])
    first = None
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(head(features), target)
        first = loss.item() if first is None else first
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.5 * first
    assert all(not p.requires_grad for p in net.parameters())


def _resized(array, size):
    return _native.squares(list(array), size)


def test_onnx_gives_the_same_vectors(model, pictures, tmp_path):
    onnxruntime = needs("onnxruntime")
    model.to_onnx(tmp_path / "base.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "base.onnx")
    (tmp_path / "run/checkpoints").mkdir(parents=True)
    (tmp_path / "run/config.toml").write_text("")
    with pytest.raises(anchorhood.InputError, match="part of a run"):
        model.to_onnx(tmp_path / "run/model.onnx")
    pixels = _resized(pictures[0], model.size).transpose(0, 3, 1, 2) / np.float32(255)
    mean, std = (np.array(v, np.float32).reshape(1, 3, 1, 1) for v in (model.mean, model.std))
    (vectors,) = session.run(None, {"pixels": ((pixels - mean) / std).astype(np.float32)})
    assert np.allclose(vectors, model.embed(pictures[0]), atol=1e-5)


def test_the_package_is_typed(tmp_path):
    needs("mypy")
    sample = ROOT / "crates/python/tests/typed_sample.py"
    package = Path(anchorhood.__file__).parent
    assert (package / "py.typed").is_file()
    words = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir=/dev/null"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words, str(package), str(sample)], capture_output=True, text=True, cwd=tmp_path
    )
    # The sample has one mistake on purpose: what is checked is noticed.
    assert "typed_sample.py:16: error:" in done.stdout and "Found 1 error in 1 file" in done.stdout, done.stdout


def test_the_compiled_part_is_what_its_stub_says(tmp_path):
    needs("mypy")
    (tmp_path / "not_declared").write_text("\n".join(f"anchorhood._native.{name}" for name in ("Asked", "On", "Own", "Pixels", "StrPath", "Vectors", "__all__")))
    words = ["--allowlist", "not_declared", "anchorhood._native"]
    done = subprocess.run([sys.executable, "-m", "mypy.stubtest", *words], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_docstrings_run():
    import doctest
    import importlib
    import pkgutil

    tried = 0
    for module in pkgutil.iter_modules(anchorhood.__path__, "anchorhood."):
        if module.name in ("anchorhood.__main__", "anchorhood._command_line"):
            continue
        if module.name == "anchorhood.sklearn":
            needs("sklearn", "scikit-learn")
        result = doctest.testmod(importlib.import_module(module.name))
        assert result.failed == 0, module.name
        tried += result.attempted
    result = doctest.testmod(anchorhood)
    assert result.failed == 0 and tried + result.attempted > 15


def test_the_guides_examples_run(folder, tmp_path, monkeypatch):
    """Every block of Python in docs/how-to/python.md, one after the other, with the drawn pictures in place of the reader's own."""
    for module in ("torch", "sklearn", "torchvision"):
        needs(module)
    text = (ROOT / "docs/how-to/python.md").read_text(encoding="utf-8")
    blocks = [block.split("\n", 1)[1] for block in text.split("```")[1::2] if block.startswith("python\n")]
    assert len(blocks) > 5
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures").symlink_to(folder)
    names = {}
    for block in blocks:
        exec(compile(block, "docs/how-to/python.md", "exec"), names)


def test_the_tour_runs(tmp_path):
    nbformat, nbclient = needs("nbformat"), needs("nbclient")
    needs("ipykernel")
    tour = nbformat.read(ROOT / "examples/tour.ipynb", as_version=4)
    client = nbclient.NotebookClient(tour, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = [output["data"] for cell in tour.cells if cell.cell_type == "code" for output in cell.outputs if "data" in output]
    pages = "".join(data.get("text/html", "") for data in shown)
    for seen in (
        "120 pictures, vectors of 256",
        "resnet18 of width 32",
        "the most similar: 11 pictures",
        "3 clusters",
        "12 pictures to stand for all 120",
        "1 group of pictures that are the same",
        "pictures-1: and on",
        '<iframe style="width: 100%; height: 40em; border: 1px solid #ddd" srcdoc=',
        '<iframe src="http://127.0.0.1:',
    ):
        assert seen in pages, seen
    assert pages.count("data:image/png") >= 6 and any("image/svg+xml" in data for data in shown)
