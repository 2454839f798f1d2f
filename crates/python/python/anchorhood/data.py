"""Published data sets and models: which there are, fetched, checked, packed.

>>> "svhn" in sets() and sets()["svhn"].fetched
True
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from . import _native
from ._model import bar_of_tqdm

__all__ = ["Check", "DataSet", "Packed", "check", "fetch", "fetch_model", "pack", "sets"]

StrPath = str | os.PathLike[str]


class DataSet(NamedTuple):
    """A published data set."""

    #: What it is.
    title: str
    #: Its page.
    homepage: str
    #: Whether `fetch` gets it; others need an account, and `fetch` says what to put where.
    fetched: bool


class Check(NamedTuple):
    """What a copy of a data set is."""

    #: Which set, in words.
    set: str
    #: Where it lies.
    path: Path
    #: Each part, with how many pictures were found and how many there should be, where that is known.
    splits: dict[str, tuple[int, int | None]]
    #: What is missing or broken: the file, and what is wrong with it.
    problems: list[tuple[str, str]]
    #: What is whole, and yet not what one would expect.
    warnings: list[tuple[str, str]]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing or broken."""
        return not self.problems and all(wanted in (None, found) for found, wanted in self.splits.values())


class Packed(NamedTuple):
    """A data set in one file."""

    #: How many pictures.
    pictures: int
    #: Pixels a side.
    size: int
    #: Length of the file.
    bytes: int
    #: Files that could not be read, each with the reason.
    skipped: list[tuple[str, str]]


def sets() -> dict[str, DataSet]:
    """The published data sets by their names, as `train` takes them."""
    return {name: DataSet(title, homepage, fetched) for name, title, homepage, fetched in _native.data_sets()}


def fetch(
    name: str,
    to: StrPath = "data",
    *,
    extra: bool = False,
    keep: bool = False,
    mirror: str | None = None,
    progress: bool = True,
) -> Path:
    """Downloads a published data set, verifies and unpacks it, unless it is there, and gives its folder; `train(name)` finds it then. `extra`
    gets SVHN's further pictures, `keep` keeps archives, `mirror` is another address, with the official checksums."""
    with _Progress(progress) as told:
        return _native.fetch(name, False, to, extra, keep, mirror, None, told)


def fetch_model(
    name: str, *, sha256: str | None = None, mirror: str | None = None, progress: bool = True
) -> Path:
    """Downloads a model by its published name, or by its address and the `sha256` of its bytes, and gives its file; `load(name)` finds it
    then."""
    with _Progress(progress) as told:
        return _native.fetch(name, True, "data", False, False, mirror, sha256, told)


def check(data: StrPath, *, progress: bool = False) -> Check:
    """Which data set a copy is, and what is missing or broken: a folder, an archive of CIFAR, a packed set, or a name as for `train`."""
    with _Progress(progress) as told:
        found = _native.data_check(os.fspath(data), told)
    which, path, splits, problems, warnings = found
    return Check(which, path, {name: (there, wanted) for name, there, wanted in splits}, problems, warnings)


def pack(data: StrPath, path: StrPath, *, size: int | None = None, overwrite: bool = False, progress: bool = False) -> Packed:
    """Resizes all pictures of a folder or data set once, into one file that opens at once: `train(path)`."""
    with _Progress(progress) as told:
        return Packed(*_native.data_pack(os.fspath(data), path, size, overwrite, told))


class _Progress:
    """A bar for each part of some work, where it is wanted and tqdm is installed; what is said beside it is printed."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._what: str | None = None
        self._bar: Any = None

    def __enter__(self) -> Callable[[str, int, int], object]:
        return self._told

    def _told(self, what: str, done: int, total: int) -> None:
        if not self._wanted:
            return
        if total == 0:
            print(what)
            return
        if what != self._what:
            self._close()
            self._what, self._bar = what, bar_of_tqdm(total, what)
        if self._bar is not None:
            self._bar.total = total
            self._bar.update(done - self._bar.n)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def __exit__(self, *_: object) -> None:
        self._close()
