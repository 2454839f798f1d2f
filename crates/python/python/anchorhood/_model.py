"""Models: pictures in, vectors out."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _native, _pictures, _show
from .errors import InputError, PictureError

Vectors = npt.NDArray[np.float32]
StrPath = str | os.PathLike[str]

#: Pictures at a time where nobody says how many.
BATCH = 128


class Features(np.ndarray[Any, np.dtype[np.float32]]):
    """Vectors of pictures, a row each: an array of NumPy, with names and labels where the pictures have some.

    Rows have unit length, so that the product of two is their similarity. What is cut out of it has neither names nor labels.
    """

    #: What each picture is called: its path in the folder, or as it was given.
    names: list[str] | None
    #: The class of each picture: the folder's sub-folders, or what a data set says.
    labels: list[str] | None
    _paths: list[Path] | None

    @classmethod
    def _of(
        cls,
        vectors: Vectors,
        names: list[str] | None = None,
        labels: list[str] | None = None,
        paths: list[Path] | None = None,
    ) -> Features:
        features = vectors.view(cls)
        features.names, features.labels, features._paths = names, labels, paths
        return features

    def __array_finalize__(self, of: object) -> None:
        self.names = self.labels = self._paths = None

    def _repr_html_(self) -> str | None:
        if self._paths is None or self.ndim != 2:
            return None
        rows = np.asarray(self)
        pictures: list[tuple[Path, float | None, bool]] = []
        for i in np.linspace(0, len(rows) - 1, min(len(rows), 6)).round().astype(int):
            similar = rows @ rows[i]
            similar[i] = np.inf
            pictures.append((self._paths[i], None, True))
            near = np.argsort(-similar, kind="stable")[1:7]
            pictures += [(self._paths[j], float(similar[j]), False) for j in near]
        columns = min(len(rows), 7)
        words = f"{_show.counted(len(rows), 'picture')}, vectors of {rows.shape[1]}. Some of them, each with those most like it:"
        return _show.line(words) + _show.image(_native.file_sheet(pictures, columns, 80), "pictures and their neighbours")


class Model:
    """A network that makes vectors of pictures; `load` opens one.

    >>> model = load("base")
    >>> model.size, model.dim
    (96, 256)
    """

    def __init__(self, native: _native.Model, opened: tuple[str, str, str, str, int]) -> None:
        self._native = native
        self._opened = opened

    # ---- what it is ----

    @property
    def path(self) -> str:
        """The file it was read from, or `base`."""
        return self._native.path

    @property
    def fingerprint(self) -> str:
        """32 digits of everything that decides what it makes of a picture."""
        return self._native.fingerprint

    @property
    def size(self) -> int:
        """Pixels a side of what the network is given."""
        return self._native.size

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._native.dim(None)

    @property
    def network(self) -> str | None:
        """The network's name; nobody knows that of an ONNX file."""
        return self._native.network and self._native.network[0]

    @property
    def width(self) -> int | None:
        """Channels after the network's stem."""
        return self._native.network and self._native.network[1]

    @property
    def mean(self) -> list[float]:
        """Mean of each channel that pictures are normalised by, of values from 0 to 1."""
        return self._native.normalisation[0]

    @property
    def std(self) -> list[float]:
        """Standard deviation of each channel, likewise."""
        return self._native.normalisation[1]

    @property
    def device(self) -> str:
        """Where it runs, in words."""
        return self._native.device

    # ---- what it does ----

    def embed(self, x: Any, batch: int = BATCH, *, layer: str | None = None, progress: bool = False) -> Any:
        """The vectors of pictures: `Features`, a row for each; of a torch tensor, a tensor on its device.

        Pictures are a folder (or a .tar of them, or a .txt that lists files), a path or a list of them, PIL pictures, an array N×H×W×3 of
        uint8 (read where it lies, where it is contiguous) or of floats from 0 to 1, a tensor N×3×H×W, a data set or a data loader. Of a
        folder, files that cannot be read are left out with a warning; of a list, they are an error.

        `layer` asks for another layer than the last: `conv1` to `conv5`. `batch` is how many pictures are computed together. `progress`
        shows a bar while files are read, where tqdm is installed.

        >>> pictures = np.random.default_rng(0).random((3, 32, 48, 3))
        >>> load("base").embed(pictures).shape
        (3, 256)
        """
        batch = _count(batch, "batch")
        if _pictures.is_path(x):
            if _pictures.is_folder(x):
                return self._embed_folder(x, batch, layer, progress)
            return self._embed_files([x], batch, layer, progress)
        if isinstance(x, np.ndarray) and x.dtype.kind in "OUS":
            x = x.tolist()
        if _pictures.is_array(x):
            pictures = _pictures.batch_of(x)
            if len(pictures) == 0:
                raise InputError("an array without a picture came; give at least one")
            features = Features._of(self._native.embed_array(pictures, batch, layer))
            return _to_torch(features, x.device) if _pictures.is_tensor(x) else features
        if _pictures.is_picture(x):
            x = [x]
        if isinstance(x, (list, tuple)):
            return self._embed_list(x, batch, layer, progress)
        if _pictures.is_loader(x):
            return self._embed_loader(x, batch, layer)
        if _pictures.is_dataset(x):
            return self._embed_dataset(x, batch, layer)
        raise InputError(
            f"a {type(x).__name__} came; pictures are a folder, paths, PIL pictures, an array N×H×W×3, a tensor N×3×H×W, a data set or a "
            "data loader"
        )

    def _embed_folder(self, folder: Any, batch: int, layer: str | None, progress: bool) -> Features:
        found = _native.find_pictures(folder, True)
        paths = [path for _, path, _ in found]
        with _bar(progress, len(paths)) as told:
            vectors, failed = self._native.embed_files(paths, batch, layer, told)
        if len(failed) == len(paths):
            name, why = found[0][0], failed[0][1]
            raise PictureError(f"{folder}: none of its {len(paths)} pictures can be read; the first is {name} ({why})")
        for i, why in failed[:5]:
            warnings.warn(f"{found[i][0]}: skipped: {why}", stacklevel=3)
        if len(failed) > 5:
            warnings.warn(f"and {len(failed) - 5} more pictures cannot be read", stacklevel=3)
        left_out = {i for i, _ in failed}
        kept = [file for i, file in enumerate(found) if i not in left_out]
        classes = [label for _, _, label in kept if label is not None]
        labels = classes if len(classes) == len(kept) else None
        return Features._of(vectors, [name for name, _, _ in kept], labels, [path for _, path, _ in kept])

    def _embed_files(self, files: Sequence[Any], batch: int, layer: str | None, progress: bool) -> Features:
        with _bar(progress, len(files)) as told:
            vectors, failed = self._native.embed_files(files, batch, layer, told)
        if failed:
            i, why = failed[0]
            more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
            raise PictureError(f"{os.fspath(files[i])}: cannot be used as a picture: {why}{more}")
        return Features._of(vectors, [os.fspath(file) for file in files], None, [Path(file) for file in files])

    def _embed_list(self, x: Sequence[Any], batch: int, layer: str | None, progress: bool) -> Features:
        if not x:
            raise InputError("an empty list came; give at least one picture")
        if all(_pictures.is_path(one) for one in x):
            return self._embed_files(x, batch, layer, progress)
        if any(_pictures.is_path(one) for one in x):
            raise InputError("a list of paths and of pictures came; give one kind, or embed them one after the other")
        pictures = [_pictures.one_of(one) for one in x]
        return Features._of(self._native.embed_pictures(pictures, batch, layer))

    def _embed_loader(self, loader: Any, batch: int, layer: str | None) -> Features:
        vectors, labels = [], []
        for pictures, label in _pictures.items(loader, "batch"):
            some = np.asarray(self.embed(_as_batch(pictures), batch, layer=layer))
            vectors.append(some)
            labels += _pictures.labels_of(label, len(some))
        if not vectors:
            raise InputError("a data loader without a batch came; give at least one picture")
        return Features._of(np.concatenate(vectors), None, _pictures.label_names(loader.dataset, labels))

    def _embed_dataset(self, data: Any, batch: int, layer: str | None) -> Features:
        vectors, labels = [], []
        for some in _chunks(_pictures.items(data), batch):
            pictures = [_pictures.one_of(picture) for picture, _ in some]
            labels += [label for _, label in some]
            vectors.append(self._native.embed_pictures(pictures, batch, layer))
        if not vectors:
            raise InputError("a data set without a picture came; give at least one")
        return Features._of(np.concatenate(vectors), None, _pictures.label_names(data, labels))

    # ---- for other programs ----

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Writes it as an ONNX file: `pixels` N×3×size×size in floats, normalised by `mean` and `std`; out comes `embedding`."""
        self.export(onnx=path, overwrite=True)

    def export(
        self,
        *,
        onnx: StrPath | None = None,
        safetensors: StrPath | None = None,
        timm: StrPath | None = None,
        bf16: StrPath | None = None,
        size: int | None = None,
        whiten_on: StrPath | None = None,
        whiten: float = 0.5,
        overwrite: bool = False,
    ) -> list[str]:
        """Writes it for other programs, as `anchorhood export` does, and says how each file is loaded: an `onnx` file, the weights with
        torchvision's names (`safetensors`), a folder as `timm` loads it (ResNets of the published width), or the model alone for this
        program, its numbers as `bf16`. `size` gives it pictures of so many pixels a side; `whiten_on` whitens it by pictures of a folder,
        by the power `whiten`.

        >>> import tempfile
        >>> place = os.path.join(tempfile.mkdtemp(), "small.safetensors")
        >>> said = load("base").export(bf16=place)
        >>> load(place).dim
        256
        """
        if not (onnx or safetensors or timm or bf16):
            raise InputError("export: give at least one of onnx, safetensors, timm and bf16")
        return self._native.export(onnx, safetensors, timm, bf16, size, whiten_on, whiten, overwrite)

    def state_dict(self) -> dict[str, Any]:
        """Its weights by torchvision's names, as `load_state_dict` takes them: torch's tensors, or arrays where there is no torch.

        >>> weights = load("base").state_dict()
        >>> tuple(weights["conv1.weight"].shape)
        (32, 3, 3, 3)
        """
        arrays = _safetensors(self._native.weights())
        try:
            import torch
        except ImportError:
            return dict(arrays)
        return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}

    def __repr__(self) -> str:
        network = f"{self.network} of width {self.width}, " if self.network else ""
        return f"<anchorhood.Model {self.path}: {network}{self.size}×{self.size} pixels to {self.dim} values, {self.device}>"

    def _repr_html_(self) -> str:
        text = _show.line(repr(self)[1:-1])
        return text + (_show.image(_filters(self._native), "its first layer") if self.network else "")

    def __reduce__(self) -> Any:
        return _reopen, (self.fingerprint, self._opened)


def load(
    model: str | os.PathLike[str] = "base",
    *,
    device: str = "auto",
    precision: str = "f32",
    threads: int = 0,
    runs: str | os.PathLike[str] = "runs",
) -> Model:
    """Opens a model: `base`, which is inside the package, a run's name or folder, a checkpoint or model file, a ResNet of torchvision or
    timm (`.pth`, `.safetensors`), or an ONNX file.

    `device` is `auto`, `cpu`, `cuda` or `cuda:N`; `precision` what numbers a GPU computes with: `f32`, `tf32` or `bf16`; `threads` 0 for
    one a core.

    >>> load("base").network
    'resnet18'
    """
    opened = (os.fspath(model), os.fspath(runs), device, precision, _count(threads, "threads", 0))
    return Model(_native.Model(*opened), opened)


def _reopen(fingerprint: str, opened: tuple[str, str, str, str, int]) -> Model:
    """Opens the model that was pickled, where it was found before."""
    model = Model(_native.Model(*opened), opened)
    if model.fingerprint != fingerprint:
        raise InputError(
            f"{model.path}: is another model now ({model.fingerprint}) than the one that was pickled ({fingerprint}); put that one back, or "
            "make what was pickled again"
        )
    return model


def _count(n: Any, name: str, least: int = 1) -> int:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < least:
        raise InputError(f"{name}={n!r}: give a whole number, {least} or more")
    return int(n)


def _chunks(of: Iterable[Any], size: int) -> Iterator[list[Any]]:
    of = iter(of)
    while some := list(islice(of, size)):
        yield some


def _as_batch(pictures: Any) -> Any:
    """A loader's batch: an array, or a list of pictures where it collates none."""
    if _pictures.is_array(pictures) or isinstance(pictures, (list, tuple)):
        return pictures
    raise InputError(f"a data loader gave a {type(pictures).__name__}, and no batch of pictures; a batch is a tensor N×3×H×W")


def _to_torch(features: Features, device: Any) -> Any:
    """A tensor on a device: on the CPU, of the same memory."""
    return sys.modules["torch"].from_dlpack(np.asarray(features)).to(device)


def _safetensors(data: bytes) -> dict[str, npt.NDArray[Any]]:
    """The tensors of a safetensors file."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    kinds = {"F32": np.float32, "I64": np.int64}
    body = memoryview(data)[8 + length :]
    return {
        name: np.frombuffer(body[slice(*about["data_offsets"])], kinds[about["dtype"]]).reshape(about["shape"])
        for name, about in header.items()
    }


def _filters(native: _native.Model) -> bytes:
    """The first layer's filters as pictures, each stretched to all of black and white; those that do not see red, green and blue in greys."""
    weights = _safetensors(native.weights()).items()
    firsts = [_in_colour(array) for name, array in weights if re.fullmatch(r"(\w+\.)?conv1\.weight", name)]  # two of a split brain
    filters = np.concatenate(firsts)[:64]
    low, high = filters.min((1, 2, 3), keepdims=True), filters.max((1, 2, 3), keepdims=True)
    seeing = (high - low).ravel() > 0.01 * (high - low).max()  # training may let some die
    tiles = np.rint(((filters - low) / np.maximum(high - low, 1e-12))[seeing] * 255).astype(np.uint8)
    scale = max(1, 36 // tiles.shape[1])
    tiles = np.pad(tiles.repeat(scale, 1).repeat(scale, 2), ((0, 0), (2, 2), (2, 2), (0, 0)), constant_values=250)
    rows = [np.concatenate(list(row), axis=1) for row in _chunks(tiles, 16) if len(row) == min(16, len(tiles))]
    return _native.png(np.ascontiguousarray(np.concatenate(rows, axis=0)))


def _in_colour(weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Filters as pictures, N×H×W×3."""
    filters: npt.NDArray[Any] = weights.transpose(0, 2, 3, 1)
    return filters if filters.shape[-1] == 3 else filters.mean(-1, keepdims=True).repeat(3, -1)


class _bar:
    """A bar of tqdm, where it is wanted and there; else nothing."""

    def __init__(self, wanted: bool, total: int) -> None:
        self._bar = bar_of_tqdm(total, "pictures") if wanted else None

    def __enter__(self) -> Any:
        return None if self._bar is None else self._told

    def _told(self, done: int) -> None:
        assert self._bar is not None
        self._bar.update(done - self._bar.n)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def bar_of_tqdm(total: int, unit: str) -> Any:
    """A bar for notebooks and terminals, or None where tqdm is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # in a notebook without ipywidgets its bar is one of letters
            from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=total, unit=f" {unit}")
