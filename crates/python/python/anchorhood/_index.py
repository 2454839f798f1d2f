"""Indices: which pictures are alike, which are the same, which groups do they form?"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from . import _native, _pictures, _show
from ._model import BATCH, Model, _count, bar_of_tqdm, load
from .errors import AnchorhoodWarning, InputError

StrPath = str | os.PathLike[str]
T = TypeVar("T")
#: Labels of some pictures of an index.
Labels = Sequence[Any] | Mapping[int | StrPath, Any] | StrPath | None
#: A picture of a sheet: the heading it begins, its number, its bar, whether it is framed, its note.
_Shown = tuple[str | None, int, float | None, bool, str]


def _listed(paths: StrPath | Sequence[StrPath]) -> list[StrPath]:
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


class Hit(NamedTuple):
    """A picture that was found."""

    #: Its number in the index.
    number: int
    #: Its name in the index.
    name: str
    #: Where it lies.
    path: Path
    #: 1 is the same picture; pictures that have nothing in common are near 0.
    similarity: float
    #: Its class, where the folder has classes.
    label: str | None


class _OnSheet(list[T]):
    """A list that a notebook shows as pictures."""

    _index: Index
    _query: npt.NDArray[np.uint8] | StrPath | None = None

    def _shown(self) -> list[_Shown]:
        raise NotImplementedError

    def _words(self) -> str:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        shown = self._shown()
        if not shown:
            return _show.line(self._words())
        return _show.line(self._words()) + _show.image(self._index._native.sheet(self._query, shown, 96), self._words())


class Hits(_OnSheet[Hit]):
    """The pictures most like a query, most similar first."""

    def _shown(self) -> list[_Shown]:
        return [(None, hit.number, hit.similarity, False, "") for hit in self[:60]]

    def _words(self) -> str:
        return f"the most similar: {_show.counted(len(self), 'picture')}"


class DuplicateGroup(NamedTuple):
    """Pictures that are one."""

    #: The one to keep.
    keep: Path
    #: What it has before the others.
    why: list[str]
    #: The others: path, in which way it is a copy, how alike the detail is.
    others: list[tuple[Path, str, float]]
    #: Their numbers in the index, the kept one first; those of another index come after its own.
    numbers: list[int]


class Moves(NamedTuple):
    """Files that were moved."""

    #: Where each lay, and where it is now.
    moved: list[tuple[Path, Path]]
    #: Those that were left where they are, each with the reason.
    left: list[tuple[Path, str]]
    #: What `undo_moves` is given to put them back.
    record: Path | None


class Restored(NamedTuple):
    """Files that were put back."""

    #: How many were moved back.
    moved: int
    #: How many were in their place already.
    there: int
    #: Those that were not, each with the reason.
    left: list[tuple[Path, str]]


def undo_moves(record: StrPath, *, trust_record: bool = False) -> Restored:
    """Puts back what `Duplicates.move_to` moved, by its record `undo.jsonl`. One that nothing shows to be yours moves nothing, unless
    `trust_record` is said once you have looked at it."""
    moved, there, left = _native.undo_moves(record, trust_record)
    _warn_of_left(left, "not put back")
    return Restored(moved, there, left)


def _warn_of_left(left: list[tuple[Path, str]], what: str) -> None:
    for path, why in left:
        warnings.warn(f"{path}: {what}: {why}", AnchorhoodWarning, stacklevel=3)


class Duplicates(_OnSheet[DuplicateGroup]):
    """Groups of pictures that are one, the largest first."""

    #: Bursts: photographs of one scene that are no copies of each other.
    bursts: list[list[Path]]
    _native: _native.Duplicates

    def move_to(self, folder: StrPath, *, dry_run: bool = False) -> Moves:
        """Moves all but the kept picture of each group to a folder, made where there is none, with a record `undo.jsonl` of what was
        moved, which `undo_moves` follows back. Nothing is deleted or overwritten; a file that changed since it was compared stays, with a
        warning. `dry_run` only says what would be moved."""
        if "_native" not in self.__dict__:
            raise InputError("these groups were pickled, and their files are not known any more; find them again with Index.duplicates()")
        moved, left = self._native.move_to(folder, dry_run)
        _warn_of_left(left, "not moved")
        return Moves(moved, left, None if dry_run or not moved else Path(folder) / "undo.jsonl")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_native"}

    def _shown(self) -> list[_Shown]:
        shown: list[_Shown] = []
        for number, group in enumerate(self[:20], 1):
            notes = ["keep"] + [kind for _, kind, _ in group.others]
            for place, (i, note) in enumerate(zip(group.numbers, notes)):
                if i < len(self._index):  # those of another index have no place here
                    shown.append((f"group {number}" if place == 0 else None, i, None, place == 0, note))
        return shown

    def _words(self) -> str:
        others = sum(len(group.others) for group in self)
        return f"{_show.counted(len(self), 'group')} of pictures that are the same; {_show.counted(others, 'picture')} could go"


class Cluster(NamedTuple):
    """Pictures that belong together, the most typical first."""

    #: Where they lie.
    paths: list[Path]
    #: Their numbers in the index.
    numbers: list[int]
    #: Each one's similarity to the cluster's centre.
    similarities: list[float]


class Clusters(_OnSheet[Cluster]):
    """Clusters of an index, the largest first."""

    @property
    def labels(self) -> npt.NDArray[np.int64]:
        """The cluster of each picture of the index, −1 for pictures in none: as scikit-learn has it."""
        labels = np.full(len(self._index), -1, np.int64)
        for number, cluster in enumerate(self):
            labels[cluster.numbers] = number
        return labels

    def _shown(self) -> list[_Shown]:
        return [
            (f"cluster {number}: {_show.counted(len(cluster.numbers), 'picture')}" if place == 0 else None, i, similarity, False, "")
            for number, cluster in enumerate(self[:12])
            for place, (i, similarity) in enumerate(zip(cluster.numbers[:10], cluster.similarities))
        ]

    def _words(self) -> str:
        return f"{_show.counted(len(self), 'cluster')}, each with its most typical pictures"


class Outlier(NamedTuple):
    """A picture that is odd."""

    #: Its number in the index.
    number: int
    #: Its name in the index.
    name: str
    #: Where it lies.
    path: Path
    #: How odd it is: the share of it that is unlike its neighbours; or its sharpness, brightness or contrast.
    score: float


class Outliers(_OnSheet[Outlier]):
    """Odd pictures, the oddest first."""

    def _shown(self) -> list[_Shown]:
        return [(None, one.number, None, False, f"{one.score:.3f}") for one in self[:60]]

    def _words(self) -> str:
        return f"the oddest: {_show.counted(len(self), 'picture')}"


class Guess(NamedTuple):
    """What class a picture is likely of."""

    #: The class: the given label where there is one.
    label: str
    #: How sure it is, up to 1; 1 where the label was given.
    confidence: float
    #: The class that came second, if one did.
    second: str | None


class Guesses(list[Guess]):
    """A class for each picture of an index, in its order."""

    #: The share of the given labels that the others would have guessed right.
    right: float

    @property
    def labels(self) -> list[str]:
        """The classes alone."""
        return [guess.label for guess in self]


class WrongLabel(NamedTuple):
    """A label that the pictures most like its own contradict."""

    #: The picture's number in the index.
    number: int
    #: Its name in the index.
    name: str
    #: Where it lies.
    path: Path
    #: Its label.
    given: str
    #: What the others say.
    likely: str
    #: Share of the votes for the label it has.
    given_share: float
    #: Share of the votes for the other.
    likely_share: float
    #: Whether that is as large as with pictures of the other class.
    confident: bool


class WrongLabels(_OnSheet[WrongLabel]):
    """Labels that are likely wrong, the likeliest first."""

    def _shown(self) -> list[_Shown]:
        return [(None, one.number, one.likely_share, False, f"{one.given} → {one.likely}") for one in self[:60]]

    def _words(self) -> str:
        return f"{_show.counted(len(self), 'label')} that may be wrong"


class Selected(_OnSheet[Path]):
    """Pictures that stand for all, the first to label first."""

    _chosen: list[tuple[int, float | None]]

    @property
    def numbers(self) -> list[int]:
        """Their numbers in the index."""
        return [i for i, _ in self._chosen]

    def _shown(self) -> list[_Shown]:
        return [(None, i, similarity, False, "") for i, similarity in self._chosen[:60]]

    def _words(self) -> str:
        return f"{_show.counted(len(self), 'picture')} to stand for all {len(self._index):,}"


class Server:
    """A page to walk through an index, served by a thread of this process. Shown in a notebook, it is the page; `with` ends it."""

    def __init__(self, native: _native.Server, token: str | None) -> None:
        self._native = native
        self._token = token

    @property
    def url(self) -> str:
        """What to open in a browser."""
        word = f"?token={self._token}" if self._token else ""
        return f"http://{self._native.address}/{word}"

    def stop(self) -> None:
        """Ends it."""
        self._native.stop()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<anchorhood.Server {self.url}>"

    def _repr_html_(self) -> str:
        link = f'<p style="margin: 0.3em 0"><a href="{self.url}" target="_blank">{self.url}</a></p>'
        return f'{link}<iframe src="{self.url}" style="width: 100%; height: 40em; border: 1px solid #ddd"></iframe>'


def serve(
    what: StrPath | Sequence[StrPath],
    port: int = 0,
    *,
    model: StrPath | None = None,
    runs: StrPath = "runs",
    data: str | None = None,
    moved: StrPath | Sequence[StrPath] = (),
    host: str = "127.0.0.1",
    token: str | None = None,
    device: str = "auto",
    precision: str = "f32",
    threads: int = 0,
) -> Server:
    """A page to walk through folders of pictures, which are indexed while it is open, a run's name or folder, or an index, as `anchorhood serve`
    has it; served by a thread while this process goes on. Port 0 is any that is free; an address that other machines can reach needs a
    `token`. `data` says where a run's pictures are, `moved` where an index's, if they have moved."""
    word = None if model is None else os.fspath(model)
    native = _native.serve_page(
        _listed(what), word, runs, data, _listed(moved), (device, precision, threads), host, port, token
    )
    return Server(native, token)


class Index:
    """The vectors of folders of pictures, in one file, ready to be asked. `Index.build` makes one, `Index.load` opens it.

    >>> import tempfile
    >>> from PIL import Image
    >>> place = Path(tempfile.mkdtemp())
    >>> for name, colour in (("sky", "lightblue"), ("sea", "blue"), ("fire", "orange")):
    ...     Image.new("RGB", (64, 64), colour).save(place / f"{name}.png")
    >>> index = Index.build(place, place / "colours.index")
    >>> [hit.name for hit in index.search(place / "sea.png", k=2)]
    ['sea.png', 'sky.png']
    >>> len(index), len(index.cluster(2)), len(index.select(2))
    (3, 2, 2)
    """

    def __init__(self, native: _native.Index, model: Model | None, moved: Sequence[StrPath] = ()) -> None:
        self._native = native
        self._model = model
        self._moved = moved

    # ---- made ----

    @classmethod
    def build(
        cls,
        folders: StrPath | Sequence[StrPath],
        path: StrPath | None = None,
        model: Model | StrPath = "base",
        *,
        layer: str | None = None,
        batch: int = BATCH,
        thumbnails: int | None = None,
        labels: bool = True,
        overwrite: bool = False,
        progress: bool = False,
    ) -> Index:
        """Embeds every picture of folders and keeps the index at `path`, or in the user's cache. One that is there is brought up to date:
        only new and changed files are read. Broken off, the same call goes on.

        `thumbnails` keeps small copies, so many pixels a side; `labels=False` takes sub-folders for no classes.
        """
        asked = _listed(folders)
        if not asked:
            raise InputError("an empty list of folders came; give at least one")
        opened = model if isinstance(model, Model) else load(model)
        bar = _IndexBar() if progress else None
        native = _native.Index.build(
            asked, path, opened._native, layer, _count(batch, "batch"), thumbnails, labels, overwrite, bar
        )
        if bar:
            bar.close()
        return cls(native, opened)

    @classmethod
    def load(
        cls, path: StrPath, model: Model | StrPath | None = None, *, moved: StrPath | Sequence[StrPath] = ()
    ) -> Index:
        """Opens an index. Its model is found where it was, unless another place is named; `moved` says where the pictures are now."""
        folders = _listed(moved)
        native = _native.Index.load(path, folders)
        word = native.find_model() if model is None else model
        if word is None:
            return cls(native, None, folders)  # what needs the model says so
        opened = word if isinstance(word, Model) else load(word)
        return cls(native.with_model(opened._native), opened, folders)

    def add(self, folders: StrPath | Sequence[StrPath] = (), *, batch: int = BATCH, progress: bool = False) -> Index:
        """Takes more folders in, and what changed in its own; gives the index as it is then, which is also saved."""
        more = _listed(folders)
        model = self._needs_model()
        known = self._native
        return Index.build([*known.folders, *more], known.path, model, layer=known.layer, batch=batch, progress=progress)

    # ---- what it is ----

    def __len__(self) -> int:
        return len(self._native)

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return self._native.path

    @property
    def names(self) -> list[str]:
        """Each picture relative to its folder."""
        return self._native.names

    @property
    def labels(self) -> list[str | None]:
        """Each picture's class, where the folder has classes."""
        return self._native.labels

    @property
    def vectors(self) -> npt.NDArray[np.float32]:
        """All vectors, a row each, of unit length."""
        return self._native.vectors()

    @property
    def model(self) -> Model | None:
        """The model that made it, where it is at hand."""
        return self._model

    def _needs_model(self) -> Model:
        if self._model is None:
            name = self._native.made_by[0]
            raise InputError(f"{self.path}: the model that made it ({name}) is not found; give Index.load(path, model=…)")
        return self._model

    # ---- what can be asked ----

    def search(self, query: Any, k: int = 20, *, exact: bool = False) -> Any:
        """The `k` pictures most like a query: `Hits`, or a list of them for several queries.

        A query is a path, a PIL picture, an array H×W×3, the number of a picture in the index, or a vector; several are a list, an array
        N×H×W×3 or vectors as rows. `exact` looks at all pictures even in an index of millions.
        """
        k = _count(k, "k")
        if isinstance(query, (list, tuple)) and not query:
            raise InputError("an empty list came; give at least one query")
        vectors, pictures, several = self._query(query)
        found = self._native.nearest(np.ascontiguousarray(vectors, np.float32), k, exact)
        results = [self._hits(pairs, picture) for pairs, picture in zip(found, pictures)]
        return results if several else results[0]

    def _query(self, query: Any) -> tuple[npt.NDArray[Any], list[Any], bool]:
        """Vectors, the queries' pictures where they are at hand, and whether there may be several."""
        if isinstance(query, (int, np.integer)) and not isinstance(query, bool):
            path = self._native.picture(_count(query, "query", 0))
            return self._embed([path]), [path], False
        if _pictures.is_array(query):
            array = _pictures.from_tensor(query)
            if array.ndim in (1, 2) and array.dtype.kind == "f":
                return np.atleast_2d(array), [None] * (1 if array.ndim == 1 else len(array)), array.ndim == 2
            if array.ndim == 3:
                picture = _pictures.one_of(query)
                return self._embed([picture]), [picture], False
            batch = _pictures.batch_of(query)
            return self._embed(batch), list(batch), True
        if isinstance(query, (list, tuple)):
            pictures = [one if _pictures.is_path(one) else _pictures.one_of(one) for one in query]
            return self._embed(query), pictures, True
        if _pictures.is_path(query) and _pictures.is_folder(query):
            vectors = self._needs_model().embed(query, layer=self._native.layer)
            return np.asarray(vectors), vectors._paths, True
        shown = query if _pictures.is_path(query) else _pictures.one_of(query)
        return self._embed([query]), [shown], False

    def _embed(self, x: Any) -> npt.NDArray[np.float32]:
        return np.asarray(self._needs_model().embed(x, layer=self._native.layer))

    def _hits(self, pairs: list[tuple[int, float]], query: Any) -> Hits:
        names, labels = self.names, self.labels
        hits = Hits(Hit(i, names[i], self._native.picture(i), similarity, labels[i]) for i, similarity in pairs)
        hits._index, hits._query = self, query
        return hits

    def duplicates(
        self,
        against: Index | None = None,
        *,
        above: float | None = None,
        nearest: int | None = None,
        keep: str | Sequence[str] = "original",
        decisions: StrPath | None = None,
    ) -> Duplicates:
        """Groups of images that are one, among themselves or with those of another index; pixels decide. `above` is the least
        correlation of their detail, `nearest` how many of each image's nearest are looked at. `keep` says which of a group is kept:
        `original`, `oldest`, `newest`, `largest`, `smallest`, `first-folder`, `first-name`, or several of these, each deciding where
        those before it leave several. What `not_duplicates` was told, here or in the file
        `decisions`, counts. A file with several names, such as a link, is one image."""
        if above is not None and not -1 <= above <= 1:
            raise InputError(f"above={above}: a correlation is between -1 and 1; the same pictures are near 1")
        other = against._native if against else None

        def path(i: int) -> Path:
            own = len(self)
            return self._native.picture(i) if i < own or other is None else other.picture(i - own)

        found = Duplicates()
        found._index = self
        rules = [keep] if isinstance(keep, str) else list(keep)
        native = self._native.duplicates(other, above, nearest, rules, decisions)
        found._native = native
        for kept, why, others in native.groups:
            copies = [(path(i), kind, score) for i, kind, score in others]
            found.append(DuplicateGroup(path(kept), why, copies, [kept, *(i for i, *_ in others)]))
        found.bursts = [[path(i) for i in burst] for burst in native.bursts]
        return found

    def not_duplicates(
        self, a: int | StrPath, b: int | StrPath, *, against: Index | None = None, decisions: StrPath | None = None
    ) -> bool:
        """Remembers that two images are no duplicates, whatever they look like: numbers, names as `Index.names` has
        them, or paths. With `against`, one may be of that index, whose numbers come after this one's, as in `DuplicateGroup.numbers`. It is kept in the user's data folder, or in the file `decisions`, by folder and content: also for other models and
        other indices. False where it was remembered already."""

        count = len(self) + (len(against) if against else 0)

        def named(one: int | StrPath) -> str:
            if not isinstance(one, int):
                return os.fspath(one)
            if _count(one, "image", 0) >= count:
                raise InputError(f"there is no picture {one}; there are {count}, numbered from 0")
            if against is None or one < len(self):
                return self.names[one]
            return os.fspath(against._native.picture(one - len(self)))

        other = against._native if against else None
        return self._native.not_duplicates(other, (named(a), named(b)), decisions)

    def cluster(
        self,
        k: int = 20,
        method: str = "kmeans",
        *,
        seed: int = 0,
        neighbours: int = 10,
        above: float = 0.8,
        least: int = 3,
    ) -> Clusters:
        """Every picture in one of `k` clusters (`kmeans`), or groups of at least `least` pictures that are each other's neighbours with a
        similarity of `above` (`graph`)."""
        if method == "kmeans":
            found = self._native.kmeans(_count(k, "k"), _count(seed, "seed", 0))
        elif method == "graph":
            found = self._native.graph(_count(neighbours, "neighbours"), above, _count(least, "least"))
        else:
            raise InputError(f"method={method!r}: clusters are found by 'kmeans' or 'graph'")
        clusters = Clusters(
            Cluster([self._native.picture(i) for i, _ in group], [i for i, _ in group], [s for _, s in group])
            for group in found
        )
        clusters._index = self
        return clusters

    def outliers(self, n: int = 30, by: str = "unlike", *, k: int = 10) -> Outliers:
        """The `n` oddest pictures: unlike the `k` most like them (`unlike`), or `blurry`, `dark`, `bright`, `flat`."""
        found = self._native.outliers(by, _count(k, "k"))[: _count(n, "n")]
        outliers = Outliers(Outlier(i, self.names[i], self._native.picture(i), score) for i, score in found)
        outliers._index = self
        return outliers

    def classify(self, labels: Labels = None, by: str = "auto", *, k: int = 10) -> Guesses:
        """A few labels carried to all pictures. `labels` has a label for each picture, None where there is none; or is a dictionary from
        names, paths or numbers to labels; or a CSV file of paths and labels; or the sub-folders' where nothing is given. `by` is `knn`,
        `logistic`, or `auto`, which is the latter for up to 10,000 labels."""
        asked = self._labelled(labels)
        found, right = self._native.classify(asked, by, _count(k, "k"))
        given = self.labels if asked is None else asked if isinstance(asked, list) else [None] * len(self)
        guesses = Guesses(
            Guess(label, confidence, second[0] if second else None) if own is None else Guess(own, 1.0, None)
            for own, (label, confidence, second) in zip(given, found)
        )
        guesses.right = right
        return guesses

    def wrong_labels(self, labels: Labels = None, *, k: int = 10) -> WrongLabels:
        """The labels that the pictures most like theirs contradict, the likeliest wrong first; `labels` is as for `classify`."""
        found = self._native.wrong_labels(self._labelled(labels), _count(k, "k"))
        wrong = WrongLabels(
            WrongLabel(i, self.names[i], self._native.picture(i), own, likely, own_share, other_share, sure)
            for i, own, likely, own_share, other_share, sure in found
        )
        wrong._index = self
        return wrong

    def _labelled(self, labels: Labels) -> list[str | None] | StrPath | None:
        if labels is None or isinstance(labels, (str, os.PathLike)):
            return labels
        if not isinstance(labels, Mapping):
            each = list(labels)
            if len(each) != len(self):
                raise InputError(f"labels: {len(each)} came for {_show.counted(len(self), 'picture')}; give one for each, None where there is none")
            return [None if one is None else str(one) for one in each]
        places = {name: i for i, name in enumerate(self.names)}
        each = [None] * len(self)
        for one, label in labels.items():
            place = one if isinstance(one, int) else places.get(os.fspath(one))
            if place is None and not isinstance(one, int):
                whole = Path(os.path.abspath(os.fspath(one)))
                place = next((i for i in range(len(self)) if Path(os.path.abspath(self._native.picture(i))) == whole), None)
            if place is None or not 0 <= place < len(self):
                raise InputError(f"labels: {one}: is not in the index; names are as Index.names has them")
            each[place] = str(label)
        return each

    def select(self, count: int, already: Sequence[int | str] = ()) -> Selected:
        """Up to `count` pictures that stand for all, the first to label first. `already` are chosen before: names or numbers."""
        numbers = {name: i for i, name in enumerate(self.names)} if any(isinstance(one, str) for one in already) else {}
        chosen_before = []
        for one in already:
            if isinstance(one, str) and one not in numbers:
                raise InputError(f"{one}: is not in the index; names are as Index.names has them")
            chosen_before.append(numbers[one] if isinstance(one, str) else _count(one, "already", 0))
        chosen = self._native.select(_count(count, "count"), chosen_before)
        selected = Selected(self._native.picture(i) for i, _ in chosen)
        selected._index, selected._chosen = self, chosen
        return selected

    def serve(self, port: int = 0, *, host: str = "127.0.0.1", token: str | None = None) -> Server:
        """A page to walk through its pictures, served by a thread while this process goes on; port 0 is any that is free. An address
        that other machines can reach needs a `token`."""
        return Server(self._native.serve(host, port, token), token)

    def __reduce__(self) -> Any:
        return _reopen, (self.path, self._model, self._moved)

    def __repr__(self) -> str:
        return f"<anchorhood.Index {self.path}: {_show.counted(len(self), 'picture')}>"

    def _repr_html_(self) -> str:
        some = np.linspace(0, len(self) - 1, min(len(self), 24)).round().astype(int)
        shown: list[_Shown] = [(None, int(i), None, False, "") for i in some]
        words = f"{self.path}: {_show.counted(len(self), 'picture')}, some of them:"
        return _show.line(words) + _show.image(self._native.sheet(None, shown, 80), "some of its pictures")


def _reopen(path: Path, model: Model | None, moved: Sequence[StrPath]) -> Index:
    """Opens the index that was pickled, where it lies."""
    return Index.load(path, model, moved=moved)


class _IndexBar:
    """A bar that begins when it is known how many files there are."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = bar_of_tqdm(total, "pictures")
        if self._bar is not None:
            self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
