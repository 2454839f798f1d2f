"""Training, and the runs that it leaves."""

from __future__ import annotations

import difflib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import _native, _pictures, _show
from ._model import Model, bar_of_tqdm, load
from .errors import AnchorhoodWarning, InputError

StrPath = str | os.PathLike[str]
#: Is given everything that happens in a run, as a dictionary whose `event` says what.
Callback = Callable[[dict[str, Any]], object]


def settings() -> dict[str, str]:
    """Every setting of a run by the name it has as an argument of `train`, with what may be its value and what it does: the flags of the
    command line, from the same declaration.

    >>> settings()["epochs"].startswith("int: Epochs in each round")
    True
    """
    return {flag.replace("-", "_"): f"{kind}: {about}" for _, flag, _, kind, about in _native.settings() if flag}


def _names() -> dict[str, str]:
    """The setting, by its name in config.toml, that each argument means: its flag, the flag's other names, its own name."""
    names = {}
    for name, flag, others, _, _ in _native.settings():
        for one in (flag, *others, name):
            if flag and one:
                names[one.replace("-", "_")] = name
    return names


def _settings(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Settings by their names in config.toml, as they could be typed."""
    names, settings = _names(), []
    for name, value in given.items():
        setting = names.get(name.removesuffix("_"))
        if setting is None:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"; did you mean `{near[0]}`?" if near else "; anchorhood.settings() has all of them"
            raise InputError(f"`{name}` is no setting of a run{hint}")
        if value is not None:
            settings.append((setting, _text(value)))
    return settings


def _text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(str(v) for v in value) or "none"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def train(
    data: Any = None,
    method: str | None = None,
    callbacks: Callback | Sequence[Callback] = (),
    *,
    labels: Sequence[Any] | None = None,
    test: Any = None,
    name: str | None = None,
    runs: StrPath = "runs",
    preset: str | None = None,
    config: StrPath | None = None,
    minutes: float | None = None,
    resume: StrPath | None = None,
    progress: bool = True,
    **settings: Any,
) -> Run:
    """Learns features from pictures, as `anchorhood train` does, and gives the run.

    `data` is what the command line takes: `shapes` (the default), a folder, the name of a published set; or pictures of your own: an array
    N×H×W×3, a tensor, PIL pictures, a data set of torch. Labels, of a data set or by `labels`, only judge; `test` is (pictures, labels) to
    judge on, else a share is held out. `method` is `anchorhood`, `and`, `simclr`, `byol` … (docs/reference/methods.md).

    All other settings are the command line's flags: `epochs=10, lr=0.03, crop_scale=(0.3, 1)`; `settings()` has them. `callbacks` are
    given each event as a dictionary. Ctrl-C saves the run and returns it; `Run.resume` goes on. An exception of a callback saves it, too,
    and is raised.

    >>> import tempfile
    >>> run = train("shapes", "and", runs=tempfile.mkdtemp(), shapes_train=64, shapes_test=32, width=2, rounds=0, epochs=1, progress=False)
    >>> run.finished, run.model().embed(np.zeros((1, 32, 32, 3), np.uint8)).shape
    (True, (1, 128))
    """
    asked, own = _asked(data, labels, test, method, name, runs, preset, config, minutes, resume, settings)
    hearers = _Hearers([callbacks] if callable(callbacks) else callbacks, progress)
    try:
        path, finished, broken_off = _native.train(asked, own, hearers)
    finally:
        hearers.close()
    if broken_off is not None and not isinstance(broken_off, KeyboardInterrupt):
        raise broken_off
    return Run(path)


def explain(
    data: Any = None,
    method: str | None = None,
    *,
    labels: Sequence[Any] | None = None,
    test: Any = None,
    preset: str | None = None,
    config: StrPath | None = None,
    minutes: float | None = None,
    **settings: Any,
) -> dict[str, tuple[str, str]]:
    """Every setting of the run that `train` would begin with the same arguments, by its name in config.toml: its value, and who decided about
    it. Nothing is trained.

    >>> explain("shapes", epochs=3)["training.epochs"]
    ('3', 'asked for')
    """
    asked, own = _asked(data, labels, test, method, None, "runs", preset, config, minutes, None, settings)
    return {name: (value, origin) for name, value, origin in _native.explain(asked, own)}


def evaluate(model: Model | str | StrPath, data: Any, *, labels: Sequence[Any] | None = None, test: Any = None, k: int | None = None) -> tuple[float, float]:
    """kNN accuracy of a model's vectors on labelled pictures, and that of raw pixels: `data`, `labels` and `test` as for `train`, `k`
    neighbours (200 where nobody says).

    >>> vectors, pixels = evaluate("base", "shapes", k=10)
    >>> vectors > pixels
    True
    """
    model = model if isinstance(model, Model) else load(model)
    if k is not None and k < 1:
        raise InputError(f"k={k}: give 1 or more")
    if _pictures.is_path(data):
        return model._native.evaluate(os.fspath(data), None, k)
    return model._native.evaluate(None, _own(data, labels, test, model.size), k)


def _asked(
    data: Any,
    labels: Any,
    test: Any,
    method: str | None,
    name: str | None,
    runs: StrPath,
    preset: str | None,
    config: StrPath | None,
    minutes: float | None,
    resume: StrPath | None,
    settings: Mapping[str, Any],
) -> tuple[_native.Asked, _native.Own | None]:
    """What is asked for of a run, and the pictures that come with it."""
    own, place = None, None
    if data is not None and not _pictures.is_path(data):
        own = _own(data, labels, test, settings.get("size"))
        place = None if resume is not None else own[0]
    elif data is not None:
        place = os.fspath(data)
        if labels is not None or test is not None:
            raise InputError("labels and test go with pictures that are given themselves; those of a folder are its sub-folders")
    given = _settings({"method": method, **settings})
    return {
        "data": place,
        "preset": preset,
        "config": config,
        "settings": given,
        "minutes": minutes,
        "runs": runs,
        "name": name,
        "resume": resume,
    }, own


def _own(data: Any, labels: Any, test: Any, size: Any) -> _native.Own:
    if isinstance(data, (list, tuple)) and any(_pictures.is_path(one) for one in data):
        raise InputError("a list of paths came; give the folder, or a .txt that lists the files, so that the run finds them again")
    pictures, found = _stack(data, size)
    classes = _pictures.label_names(data, list(labels)) if labels is not None else found
    tested = None
    if test is not None:
        if not isinstance(test, (tuple, list)) or len(test) != 2:
            raise InputError("test: give (pictures, labels)")
        tested_on, _ = _stack(test[0], size)
        tested = (tested_on, _pictures.label_names(data, list(test[1])))
    kind = type(data).__name__.lower()
    return f"python-{kind}", (pictures, classes), tested


def _stack(data: Any, size: Any) -> tuple[_pictures.Pixels, list[str] | None]:
    """Pictures of one size, and a class for each where they have some."""
    if _pictures.is_array(data):
        return _pictures.batch_of(data), None
    pictures: list[_pictures.Pixels] = []
    labels: list[Any] = []
    for picture, label in _pictures.items(data, "batch" if _pictures.is_loader(data) else "item"):
        some = list(_pictures.batch_of(picture)) if _pictures.is_loader(data) else [_pictures.one_of(picture)]
        pictures += some
        labels += _pictures.labels_of(label, len(some)) if _pictures.is_loader(data) else [label]
    if not pictures:
        raise InputError("no picture came; give at least one")
    sizes = {picture.shape for picture in pictures}
    if len(sizes) > 1 and size is None:
        raise InputError(f"pictures of {len(sizes)} sizes came; say to which they are brought: size=64")
    of = data.dataset if _pictures.is_loader(data) else data
    names = _pictures.label_names(of, labels)
    return (_native.squares(pictures, int(size)) if len(sizes) > 1 else np.stack(pictures)), names


class _Hearers:
    """Everybody who hears of a run: callbacks, and a bar."""

    def __init__(self, callbacks: Iterable[Callback], progress: bool) -> None:
        self._callbacks = list(callbacks)
        for callback in self._callbacks:
            if not callable(callback):
                raise InputError(f"callbacks: a {type(callback).__name__} cannot be called; give functions of one argument, the event")
        self._progress = progress
        self._bar: Any = None
        self._rounds = 0

    def __call__(self, text: str) -> None:
        event = json.loads(text)
        if event["event"] == "warning":
            warnings.warn(event["message"], AnchorhoodWarning, stacklevel=3)
        for callback in self._callbacks:
            callback(event)
        if self._progress:
            self._show(event)

    def _show(self, event: dict[str, Any]) -> None:
        if event["event"] == "run_started":
            rounds, epochs = event["rounds"] + 1, event["epochs"]
            self._bar = bar_of_tqdm(rounds * epochs, "epochs")
            at = event["resumed"]
            if self._bar is not None and at:
                self._bar.update(at["round"] * epochs + at["epoch"])
        elif self._bar is not None and event["event"] == "epoch_ended":
            self._bar.update(1)
            self._bar.set_postfix(round=event["round"], loss=f"{event['loss']:.4f}")
        elif self._bar is not None and event["event"] == "evaluated" and event["of"] == "trained":
            self._bar.set_description(f"kNN {100 * event['top1']:.1f}%")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class Run:
    """A run that is on disk: its settings, what happened in it, its model."""

    def __init__(self, path: StrPath) -> None:
        self.path = Path(path)
        self._config = dict(_native.run_config(self.path))

    @property
    def config(self) -> dict[str, str]:
        """Its settings by the names of config.toml, as they could be typed."""
        return dict(self._config)

    @property
    def events(self) -> list[dict[str, Any]]:
        """Everything that happened and is kept, in order."""
        return [json.loads(event) for event in _native.run_events(self.path)]

    @property
    def finished(self) -> bool:
        """Whether it came to its end."""
        return any(event["event"] == "run_ended" for event in self.events)

    @property
    def accuracy(self) -> float | None:
        """kNN accuracy after the last epoch that was judged; None without labels."""
        return self._judged("trained")

    @property
    def model_accuracy(self) -> float | None:
        """The same of its model as it is used, which may be given larger pictures than it learnt with."""
        used = self._judged("model")
        return self.accuracy if used is None else used

    def _judged(self, subject: str) -> float | None:
        judged = [e["top1"] for e in self.events if e["event"] == "evaluated" and e["of"] == subject]
        return judged[-1] if judged else None

    @property
    def metrics(self) -> Any:
        """Its epochs, a row each: round, epoch, loss, rate, speed, and kNN where it was judged. A data frame of pandas, or else of polars;
        where neither is installed a list of dictionaries."""
        rows: dict[tuple[int, int], dict[str, Any]] = {}
        for event in self.events:
            place = (event.get("round", 0), event.get("epoch", 0))
            if event["event"] == "epoch_ended":
                rows[place] = {**{k: v for k, v in event.items() if k not in ("event", "epochs")}, "knn": None, "score": None}
            elif place in rows and event.get("of") == "trained":
                if event["event"] == "evaluated":
                    rows[place]["knn"] = event["top1"]
                elif event["event"] == "label_free":
                    rows[place]["score"] = event["score"]
        return _frame(list(rows.values()))

    def plot(self) -> _show.Drawing:
        """Its curve, shown inline."""
        return _show.Drawing(_native.run_summary(self.path)[0])

    def report(self, *, data: StrPath | None = None, overwrite: bool = False) -> _show.Page:
        """The page about it, shown inline. It is written when a run ends; before that, or with `overwrite`, it is written now, with the
        pictures from `data` where they have moved."""
        page = self.path / "report.html"
        if overwrite or data is not None or not page.is_file():
            page = _native.run_report(self.path, None if data is None else os.fspath(data), overwrite)
        return _show.Page(page)

    def attention(
        self, pictures: Sequence[int], layer: str = "conv5", *, data: StrPath | None = None, device: str = "auto", threads: int = 0
    ) -> list[Strip]:
        """Where its network looked in each round, as a strip for each of some training pictures, by their numbers from 0; `data` says
        where the pictures are, if they have moved."""
        place = None if data is None else os.fspath(data)
        strips = _native.run_attention(self.path, list(pictures), layer, place, (device, "f32", threads))
        return [Strip(*strip) for strip in strips]

    def model(self, **machine: Any) -> Model:
        """Its model; `machine` is as for `load`."""
        return load(self.path, **machine)

    def resume(self, data: Any = None, callbacks: Callback | Sequence[Callback] = (), **more: Any) -> Run:
        """Goes on with it to its end. Pictures of your own must be given again."""
        return train(data, callbacks=callbacks, resume=self.path, **more)

    def __repr__(self) -> str:
        state = "finished" if self.finished else "not finished"
        return f"<anchorhood.Run {self.path}: {self._config['method.name']} on {self._config['data.set']}, {state}>"

    def __str__(self) -> str:
        return _native.run_summary(self.path)[1]

    def _repr_html_(self) -> str:
        curve, words = _native.run_summary(self.path)
        verdict = words.split("\n\n")[-1] if "\n\n" in words else ""
        return _show.line(repr(self)[1:-1]) + curve + _show.line(verdict)


class Strip:
    """A training picture, and where a network looked at it in each round; shown in a notebook it is the picture."""

    def __init__(self, number: int, png: bytes, about: str) -> None:
        #: Its number among the training pictures.
        self.number = number
        #: The bytes of a PNG file.
        self.png = png
        #: What it shows.
        self.about = about

    def save(self, path: StrPath) -> None:
        """Writes it as a PNG file."""
        _native.write_file(path, self.png)

    def __repr__(self) -> str:
        return f"<anchorhood.Strip {self.about}>"

    def _repr_html_(self) -> str:
        return _show.line(self.about) + _show.image(self.png, self.about)


class Comparison(dict[str, Any]):
    """What came of a comparison: `allowance`, `methods` (the best first) and `runs`."""

    #: The table, as it is printed.
    table: str
    #: Where the runs and comparison.md are.
    path: Path

    def __str__(self) -> str:
        return self.table


def compare(
    methods: Sequence[str],
    data: StrPath | None = None,
    callbacks: Callback | Sequence[Callback] = (),
    *,
    minutes: float | None = None,
    view_epochs: int | None = None,
    seeds: Sequence[int] = (),
    name: str | None = None,
    runs: StrPath = "runs",
    preset: str | None = None,
    config: StrPath | None = None,
    **settings: Any,
) -> Comparison:
    """Trains several methods, each for as many `minutes` or `view_epochs` as the others, and puts them side by side, as `anchorhood compare`
    does. What is finished is read, what was interrupted goes on. `seeds` repeats each; all else is as for `train`.

    >>> import tempfile
    >>> tiny = dict(shapes_train=48, shapes_test=16, size=16, width=2, batch=16, rounds=0)
    >>> found = compare(["and", "simclr"], "shapes", view_epochs=2, runs=tempfile.mkdtemp(), **tiny)
    >>> sorted(line["method"] for line in found["methods"])
    ['and', 'simclr']
    """
    if data is not None and not _pictures.is_path(data):
        raise InputError("compare: give a folder or the name of a data set, so that the runs find it again")
    asked, _ = _asked(data, None, None, None, name, runs, preset, config, minutes, None, settings)
    hear = _Hearers([callbacks] if callable(callbacks) else callbacks, False)
    found, table, path = _native.compare(asked, list(methods), view_epochs, list(seeds), hear)
    comparison = Comparison(json.loads(found))
    comparison.table, comparison.path = table, path
    return comparison


def experiments() -> dict[str, str]:
    """The paper's tables and figures that `reproduce` knows, each with what it asks and where it is in the paper.

    >>> experiments()["table5"].endswith("(Table 5)")
    True
    """
    return {name: f"{title} ({place})" for name, title, place in _native.experiments()}


class Results(dict[str, Any]):
    """What came of an experiment of the paper, ours beside the paper's: `cells`, `runs` and the evidence."""

    #: The table, as it is printed.
    table: str
    #: Where results.md, results.json and the plots are.
    path: Path

    def __str__(self) -> str:
        return self.table


def reproduce(
    name: str,
    callbacks: Callback | Sequence[Callback] = (),
    *,
    scale: str = "short",
    seeds: int = 1,
    only: Sequence[str] = (),
    output: StrPath = "reproduced",
    data_folder: StrPath | None = None,
    device: str = "auto",
    precision: str = "bf16",
    threads: int = 0,
) -> list[Results]:
    """Carries out an experiment of the paper, or `all`, as `anchorhood reproduce` does. `scale` is `smoke` (a minute on a CPU, on drawn shapes),
    `short` or `paper`; `only` names rows. What is finished is read, what was interrupted goes on."""
    hear = _Hearers([callbacks] if callable(callbacks) else callbacks, False)
    on = (device, precision, threads)
    all_results = []
    for found, table, path in _native.reproduce(name, scale, seeds, list(only), output, data_folder, on, hear):
        results = Results(json.loads(found))
        results.table, results.path = table, path
        all_results.append(results)
    return all_results


def _frame(rows: list[dict[str, Any]]) -> Any:
    try:
        import pandas
    except ImportError:
        pass
    else:
        return pandas.DataFrame(rows)
    try:
        import polars
    except ImportError:
        return rows
    return polars.DataFrame(rows, infer_schema_length=None)
