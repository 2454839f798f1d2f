"""scikit-learn's own checks of estimators, and what a transformer is used for."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import anchorhood
from anchorhood.sklearn import AnchorhoodFeatures

#: As most give pictures: arrays of four dimensions, paths. By its tags scikit-learn then leaves out all checks that hand it a table of two, and
#: says so in a warning: rows of a few real numbers are no pictures.
PICTURES = AnchorhoodFeatures()
#: As rows of a table, of any length and with any numbers: every check of a transformer.
ROWS = AnchorhoodFeatures(shape=(1, -1), values=(-1e4, 1e4))
#: Checks of rows that are not passed, by name, each with the reason: none.
EXCLUDED: dict[str, str] = {}


@pytest.mark.filterwarnings("ignore:Can't test estimator")
@parametrize_with_checks([PICTURES, ROWS], expected_failed_checks=lambda estimator: EXCLUDED if estimator.shape else {})
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_in_a_pipeline(pictures):
    array, labels = pictures
    pipeline = make_pipeline(AnchorhoodFeatures(), LogisticRegression(C=100, max_iter=500))
    assert cross_val_score(pipeline, array, labels, cv=2).mean() > 0.7


def test_files_and_rows_are_pictures_too(pictures, folder):
    array, _ = pictures
    expected = AnchorhoodFeatures().fit_transform(array)
    files = [str(path) for path in sorted(folder.rglob("*.png"), key=lambda path: path.name)]
    assert np.array_equal(AnchorhoodFeatures().fit_transform(files), expected)
    rows = AnchorhoodFeatures(shape=(32, 32, 3)).fit_transform(array.reshape(60, -1))
    assert np.array_equal(rows, expected)
    greys = array[..., 0]
    assert np.array_equal(AnchorhoodFeatures(shape=(32, 32)).fit_transform(greys.reshape(60, -1)), AnchorhoodFeatures().fit_transform(greys[..., None]))


def test_neighbours(pictures, model):
    array, _ = pictures
    fitted = AnchorhoodFeatures(model, n_neighbors=3).fit(array)
    distances, nearest = fitted.kneighbors(array[:5])
    assert nearest[:, 0].tolist() == list(range(5)) and np.allclose(distances[:, 0], 0, atol=1e-5)
    others = fitted.kneighbors(return_distance=False)
    assert others.shape == (60, 3) and all(i not in row for i, row in enumerate(others))
    assert (np.diff(distances, axis=1) >= 0).all()
    with pytest.raises(anchorhood.InputError, match="between 1 and 60"):
        fitted.kneighbors(array, n_neighbors=61)


def test_it_pickles_and_clones(pictures):
    array, _ = pictures
    fitted = AnchorhoodFeatures(batch=16).fit(array)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.transform(array), fitted.transform(array))
    assert clone(fitted).get_params() == fitted.get_params()
    assert len(fitted.get_feature_names_out()) == fitted.transform(array).shape[1]


def test_rows_of_another_length_are_told():
    with pytest.raises(anchorhood.InputError, match="rows of 5 values"):
        AnchorhoodFeatures(shape=(2, 2, 3)).fit(np.zeros((4, 5), np.uint8))
    with pytest.raises(anchorhood.InputError, match="values from 0 to 17 came"):
        AnchorhoodFeatures(shape=(2, 2), values=(0, 16)).fit(np.array([[0, 3, 5, 17]]))


def test_values_say_what_black_and_white_are():
    digits = np.arange(128).reshape(2, 64) % 17
    scaled = AnchorhoodFeatures(shape=(8, 8), values=(0, 16)).fit_transform(digits)
    assert np.array_equal(scaled, AnchorhoodFeatures(shape=(8, -1)).fit_transform(digits / 16))
