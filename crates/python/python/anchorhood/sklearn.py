"""Features of pictures as a step of scikit-learn's pipelines.

>>> import numpy as np
>>> from sklearn.linear_model import LogisticRegression
>>> from sklearn.pipeline import make_pipeline
>>> dark, bright = np.full((20, 32, 32, 3), 40, np.uint8), np.full((20, 32, 32, 3), 200, np.uint8)
>>> X, y = np.concatenate([dark, bright]), ["dark"] * 20 + ["bright"] * 20
>>> make_pipeline(AnchorhoodFeatures(), LogisticRegression()).fit(X, y).score(X, y)
1.0
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ._model import BATCH, Model, load
from .errors import InputError

__all__ = ["AnchorhoodFeatures"]


class AnchorhoodFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc, unused-ignore]
    """Pictures to vectors of unit length.

    `X` is whatever `Model.embed` takes: an array N×H×W×3, a list of paths, a folder, a data set. Where pictures are rows of a table, as
    scikit-learn's own sets have them, `shape` says what a row is: `(height, width, 3)`, or `(height, width)` of greys, where one of them may be
    -1; `values` what black and white are: `(0, 16)` for its digits. Without it rows are uint8, or floats from 0 to 1.

    `fit` opens the model and remembers the vectors of its pictures, which `kneighbors` looks among; nothing is learnt, since the model has
    learnt already: `anchorhood.train` does that, and `model` may be its run.
    """

    def __init__(
        self,
        model: Any = "base",
        *,
        layer: str | None = None,
        shape: tuple[int, ...] | None = None,
        values: tuple[float, float] | None = None,
        n_neighbors: int = 5,
        batch: int = BATCH,
        device: str = "auto",
    ) -> None:
        self.model = model
        self.layer = layer
        self.shape = shape
        self.values = values
        self.n_neighbors = n_neighbors
        self.batch = batch
        self.device = device

    def fit(self, X: Any, y: Any = None) -> AnchorhoodFeatures:
        """Opens the model and remembers the pictures' vectors."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> npt.NDArray[np.float32]:
        """Likewise, and gives them."""
        pictures = self._pictures(X, reset=True)
        self.model_ = self.model if isinstance(self.model, Model) else load(self.model, device=self.device)
        vectors: npt.NDArray[np.float32] = self._embed(pictures)
        self.vectors_, self._n_features_out = vectors, vectors.shape[1]
        return np.array(vectors)

    def transform(self, X: Any) -> npt.NDArray[np.float32]:
        """The pictures' vectors, a row each."""
        check_is_fitted(self)
        return self._embed(self._pictures(X, reset=False))

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """The nearest of the pictures of `fit`, by their number: (distances, numbers), nearest first. A distance is 1 − similarity.
        Without `X`, those of each picture of `fit`, itself left out."""
        check_is_fitted(self)
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        there = len(self.vectors_) - (X is None)
        if not 1 <= k <= there:
            raise InputError(f"n_neighbors={k}: there are {there} pictures to choose from; give between 1 and {there}")
        similar = (self.vectors_ if X is None else self.transform(X)) @ self.vectors_.T
        if X is None:
            np.fill_diagonal(similar, -np.inf)
        nearest = np.argsort(-similar, axis=1, kind="stable")[:, :k]
        distances = np.maximum(1 - np.take_along_axis(similar, nearest, 1), 0)
        return (distances, nearest) if return_distance else nearest

    def _embed(self, pictures: Any) -> npt.NDArray[np.float32]:
        return np.array(self.model_.embed(pictures, self.batch, layer=self.layer), np.float32)

    def _pictures(self, X: Any, reset: bool) -> Any:
        """Rows of a table as pictures; anything else as it is."""
        if self.shape is None:
            return X
        rows = validate_data(self, X, reset=reset, dtype=[np.uint8, np.float64, np.float32])
        if self.values is not None:
            low, high = self.values
            if rows.min() < low or rows.max() > high:
                raise InputError(f"values from {rows.min():.3g} to {rows.max():.3g} came, and values={self.values} are black and white")
            rows = (rows - low) / (high - low)
        height, width, *channels = self.shape
        try:
            return rows.reshape(len(rows), height, width, *(channels or [1]))
        except ValueError:
            raise InputError(f"rows of {rows.shape[1]} values came, which are no pictures of shape={self.shape}") from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = self.shape is not None
        tags.input_tags.string = self.shape is None
        tags.input_tags.positive_only = self.values is None or self.values[0] >= 0
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
