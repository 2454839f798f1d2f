"""What counts as pictures, and how they become bytes.

Arrays are N×H×W×3 (or ×1), tensors N×3×H×W as torch has them. Bytes are taken as they are; real numbers are taken as 0 to 1 and refused
beyond, never guessed at.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from .errors import InputError, PictureError

Pixels = npt.NDArray[np.uint8]

#: What holds pictures, beside folders of them: files whose names end so.
HOLDS_PICTURES = (".tar", ".txt")


def is_path(x: object) -> TypeGuard[str | os.PathLike[str]]:
    """Whether something names a file or a folder."""
    return isinstance(x, (str, os.PathLike))


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a path holds pictures rather than being one."""
    return os.path.isdir(path) or os.fspath(path).lower().endswith(HOLDS_PICTURES)


def is_tensor(x: object) -> bool:
    """Whether something is a tensor of torch, which is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_picture(x: object) -> bool:
    """Whether something is a picture of PIL, which is not imported for that."""
    pil = sys.modules.get("PIL.Image")
    return pil is not None and isinstance(x, pil.Image)


def is_array(x: object) -> bool:
    """Whether something is an array or a tensor of any library."""
    return isinstance(x, np.ndarray) or is_tensor(x) or hasattr(x, "__dlpack__")


def _came(x: npt.NDArray[Any]) -> str:
    return f"an array of shape {tuple(x.shape)} and dtype {x.dtype}"


def from_tensor(x: Any) -> npt.NDArray[Any]:
    """Any library's array as NumPy's, without a copy where it lies in this machine's memory."""
    if isinstance(x, np.ndarray):
        return x
    if is_tensor(x):
        x = x.detach().cpu()
    try:
        return np.from_dlpack(x)
    except (TypeError, RuntimeError, BufferError) as error:
        raise InputError(f"a {type(x).__name__} cannot be read as an array ({error}); give a NumPy array") from error


def to_bytes(x: npt.NDArray[Any]) -> Pixels:
    """Bytes as they are, and real numbers from 0 to 1 as bytes."""
    if x.dtype == np.uint8:
        return x
    if x.dtype.kind != "f":
        raise InputError(f"{_came(x)} came; pictures are uint8 (0 to 255) or floats from 0 to 1")
    if x.size == 0:
        return x.astype(np.uint8)
    least, most = float(x.min()), float(x.max())
    if not (least >= 0.0 and most <= 1.0):
        raise InputError(
            f"{_came(x)} came with values from {least:.3g} to {most:.3g}; floats are taken from 0 to 1: divide 0 to 255 by 255, undo a "
            "normalisation, or give uint8"
        )
    return np.rint(x * 255.0).astype(np.uint8)


def _three_channels(x: Pixels) -> Pixels:
    return np.repeat(x, 3, axis=-1) if x.shape[-1] == 1 else x


def batch_of(x: Any) -> Pixels:
    """N×H×W×3 bytes, contiguous, of an array (N×H×W×3) or a tensor (N×3×H×W, or N×H×W×3 where that alone fits)."""
    array = from_tensor(x)
    if not isinstance(x, np.ndarray) and array.ndim == 4 and array.shape[1] in (1, 3):
        array = array.transpose(0, 2, 3, 1)
    if array.ndim != 4 or array.shape[-1] not in (1, 3):
        hint = ""
        if array.ndim == 4 and array.shape[1] in (1, 3):
            hint = "; it looks like N×3×H×W: give x.transpose(0, 2, 3, 1)"
        elif array.ndim == 3 and array.shape[-1] in (1, 3):
            hint = "; of one picture give x[None]"
        elif array.ndim == 4 and array.shape[-1] == 4:
            hint = "; leave the fourth channel out: x[..., :3]"
        raise InputError(f"{_came(array)} came, and pictures are N×H×W×3{hint}")
    if 0 in array.shape[1:3]:
        raise InputError(f"{_came(array)} came: pictures without a pixel")
    return np.ascontiguousarray(_three_channels(to_bytes(array)))


def one_of(x: Any) -> Pixels:
    """H×W×3 bytes of one picture: PIL's, an array (H×W×3 or H×W), or a tensor (3×H×W)."""
    if is_picture(x):
        from PIL import ImageOps

        return np.array(ImageOps.exif_transpose(x).convert("RGB"))
    if not is_array(x):
        raise InputError(f"{_named(x)} came, and no picture; give paths, PIL pictures, arrays or tensors")
    array = from_tensor(x)
    if array.ndim == 2:
        array = array[..., None]
    elif not isinstance(x, np.ndarray) and array.ndim == 3 and array.shape[0] in (1, 3):
        array = array.transpose(1, 2, 0)
    if array.ndim != 3 or array.shape[-1] not in (1, 3) or 0 in array.shape:
        raise InputError(f"{_came(array)} came, and a picture is H×W×3")
    return np.ascontiguousarray(_three_channels(to_bytes(array)))


def _named(x: object) -> str:
    kind = type(x).__name__
    return f"an {kind}" if kind[:1].lower() in "aeiou" else f"a {kind}"


def is_loader(x: object) -> bool:
    """Whether something gives batches, as torch's DataLoader does."""
    return hasattr(x, "dataset") and hasattr(x, "batch_size") and hasattr(x, "__iter__")


def is_dataset(x: object) -> bool:
    """Whether something gives one picture after the other: torch's Dataset, or what can be gone through."""
    return hasattr(x, "__getitem__") and hasattr(x, "__len__") or hasattr(x, "__iter__")


def _items(data: Any) -> Iterator[Any]:
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        return (data[i] for i in range(len(data)))
    return iter(data)


def items(data: Any, what: str = "item") -> Iterator[tuple[Any, Any]]:
    """Pictures of a data set, or batches of a loader, with their labels or None; what it raises is told with its place."""
    number = 0
    of = iter(data) if is_loader(data) else _items(data)
    while True:
        try:
            item = next(of)
        except StopIteration:
            return
        except Exception as error:
            raise PictureError(
                f"{what} {number} of {_named(data)} cannot be had: it raised {type(error).__name__}: {error}"
            ) from error
        if isinstance(item, (tuple, list)) and len(item) >= 2 and not is_path(item[0]):
            yield item[0], item[1]
        elif isinstance(item, (tuple, list)) and len(item) == 1:
            yield item[0], None
        else:
            yield item, None
        number += 1


def label_names(data: Any, labels: Sequence[Any]) -> list[str] | None:
    """A class name for each label: a data set's own names where it has some."""
    if not labels or any(label is None for label in labels):
        return None
    classes = getattr(data, "classes", None)

    def name(label: Any) -> str:
        value = label.item() if hasattr(label, "item") else label
        if isinstance(classes, (list, tuple)) and isinstance(value, int) and 0 <= value < len(classes):
            return str(classes[value])
        return str(value)

    return [name(label) for label in labels]


def labels_of(batch: Any, count: int) -> list[Any]:
    """A label for each picture of a batch."""
    if batch is None:
        return [None] * count
    listed = batch.tolist() if hasattr(batch, "tolist") else list(batch) if isinstance(batch, Iterable) else [batch]
    return listed if len(listed) == count else [None] * count
