"""Image features learnt without labels.

Features of pictures in three lines:

>>> import anchorhood, numpy
>>> model = anchorhood.load("base")
>>> model.embed(numpy.zeros((2, 64, 64, 3), numpy.uint8)).shape
(2, 256)

`Model.embed` takes a folder, paths, PIL pictures, arrays, tensors, data sets and data loaders; `Index` finds the pictures that are alike;
`train` learns from pictures of your own; `anchorhood.sklearn` has a transformer for scikit-learn's pipelines.
"""

from __future__ import annotations

import platform as _platform
import sys as _sys

from . import errors
from .errors import AnchorhoodError, AnchorhoodWarning, InputError, PictureError, WorkError

try:
    from . import _native
except ImportError as _error:
    raise ImportError(
        f"anchorhood has no compiled part here for {_platform.system()} {_platform.machine()} and Python {_sys.version_info.major}."
        f"{_sys.version_info.minor} ({_error}); install a wheel that was made for them, or build one where Rust is installed: `pip install .` "
        "in a clone of the project"
    ) from _error

from ._index import (
    Cluster,
    Clusters,
    DuplicateGroup,
    Duplicates,
    Guess,
    Guesses,
    Hit,
    Hits,
    Index,
    Moves,
    Outlier,
    Outliers,
    Restored,
    Selected,
    Server,
    WrongLabel,
    WrongLabels,
    serve,
    undo_moves,
)
from ._model import Features, Model, load
from . import data
from ._run import (
    Comparison,
    Results,
    Run,
    Strip,
    compare,
    evaluate,
    experiments,
    explain,
    reproduce,
    settings,
    train,
)

__version__: str = _native.VERSION

__all__ = [
    "AnchorhoodError",
    "AnchorhoodWarning",
    "Cluster",
    "Clusters",
    "Comparison",
    "DuplicateGroup",
    "Duplicates",
    "Features",
    "Guess",
    "Guesses",
    "Hit",
    "Hits",
    "Index",
    "InputError",
    "Model",
    "Moves",
    "Outlier",
    "Outliers",
    "PictureError",
    "Restored",
    "Results",
    "Run",
    "Selected",
    "Server",
    "Strip",
    "WorkError",
    "WrongLabel",
    "WrongLabels",
    "compare",
    "data",
    "errors",
    "evaluate",
    "experiments",
    "explain",
    "load",
    "reproduce",
    "serve",
    "settings",
    "train",
    "undo_moves",
]
