"""The laws that densities and models obey, for authors of new ones: `check_density` and `check_model`.

They hold for densities and models of the library and for those of anybody else, and raise AssertionError with what is
wrong. The tests begin with them.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone

from posteriori.classifiers import GenerativeEstimator
from posteriori.classifiers.classifier import Classifier
from posteriori.densities.capabilities import check_base
from posteriori.persistence import load, save
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Codes, Numbers

_N_COMPONENTS = 3
_N_DRAWN = 150
_SINGLE_ROWS = 5
_CLOSE = 1e-9


def check_density(density: Any, cells: Any, random_state: int = 0) -> list[str]:
    """Check that a density obeys the laws on which models rely, and return the laws.

    Parameters
    ----------
    density : Density
    cells : array-like (n, d)
        Rows that the density can produce: numbers, NaN where missing; or codes from 1, 0 where missing, if the density
        is of categories. They are dealt to three components at random.
    random_state : int
        Of the components and the rows that are drawn.

    Returns
    -------
    list of str
        The laws, in the order in which they were checked.

    Raises
    ------
    AssertionError
        A law does not hold; the message says which, and by how much.
    TypeError
        The density lacks attributes that models read; `posteriori.densities.BaseDensity` has them.
    """
    check_base(density)
    rng = np.random.default_rng(random_state)
    values = np.asarray(cells)
    tile: Any
    if density.kind == "categorical":
        sizes = tuple(np.maximum(values.max(axis=0, initial=1), 1).astype(int).tolist())
        tile = Codes(np.ascontiguousarray(values, np.uint8 if max(sizes) < 256 else np.uint32), sizes)
    else:
        tile = Numbers(np.ascontiguousarray(values, np.float64))
    n = len(values)
    component = (rng.permutation(n) % _N_COMPONENTS).astype(np.int32)
    assignment = Assignment(component, rng.integers(1, 3, n).astype(np.float64), _N_COMPONENTS)
    return _checked(_laws_of_density(density, tile, assignment, rng))


def check_model(estimator: Classifier, X: Any, y: Any) -> list[str]:
    """Check that a model obeys Bayes' rule and the conventions of the library, and return the laws.

    The laws are of scikit-learn's conventions where it has some (`sklearn.utils.estimator_checks` checks more of them).

    Parameters
    ----------
    estimator : estimator of posteriori
        It is cloned, and stays as it is.
    X : frame, array or path
        Features, at least 20 rows.
    y : array-like (n,) or str
        Labels, or the name of the column that holds them.

    Returns
    -------
    list of str
        The laws, in the order in which they were checked. A model without p(x) has no law about it.

    Raises
    ------
    AssertionError
        A law does not hold; the message says which, and by how much.
    """
    frame = X if isinstance(X, pl.DataFrame) else pl.DataFrame(np.asarray(X)) if isinstance(X, np.ndarray) else X
    if isinstance(y, str):
        frame, y = frame.drop(y), frame[y]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _checked(_laws_of_model(estimator, frame, np.asarray(y)))


Law = tuple[str, Callable[[], None]]


def _checked(laws: Iterator[Law]) -> list[str]:
    found = []
    for law, check in laws:
        try:
            check()
        except AssertionError as error:
            raise AssertionError(f"this law does not hold: {law}. {error}") from None
        found.append(law)
    return found


def _require(holds: Any, what_if_not: str) -> None:
    if not holds:  # not an assert, which python -O leaves out
        raise AssertionError(what_if_not)


def _equal(found: Any, expected: Any, tolerance: float = _CLOSE) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    _require(found.shape == expected.shape, f"The shapes are {found.shape} and {expected.shape}")
    with np.errstate(invalid="ignore"):
        apart = np.where((found == expected) | (np.isnan(found) & np.isnan(expected)), 0.0, np.abs(found - expected))
    scale = np.maximum(np.where(np.isfinite(expected), np.abs(expected), 1.0), 1.0)
    worst = float(np.max(apart / scale, initial=0.0))
    _require(worst <= tolerance, f"The largest difference is {worst:.2g}, and {tolerance:.2g} is allowed")


def _laws_of_density(density: Any, tile: Any, assignment: Assignment, rng: np.random.Generator) -> Iterator[Law]:
    parameters = density.estimate(density.sufficient_statistics.of(tile, assignment))
    log_density = density.log_density(parameters, tile)
    yield (
        "the log density of a row is the sum of its log factors",
        lambda: _equal(density.log_factors(parameters, tile).sum(axis=2), log_density),
    )
    yield from _laws_of_learning(density, tile, assignment, log_density, rng)
    yield from _laws_of_rows(density, parameters, tile, log_density, rng)


def _laws_of_learning(
    density: Any, tile: Any, assignment: Assignment, log_density: Array, rng: np.random.Generator
) -> Iterator[Law]:
    component, weight, n = assignment.component, assignment.weight, len(assignment.component)

    def estimated(of: Any, given: Assignment) -> Any:
        return density.estimate(density.sufficient_statistics.of(of, given))

    def adds_up() -> None:
        halves = [np.arange(n // 2), np.arange(n // 2, n)]
        parts = [density.sufficient_statistics.of(tile.rows(half), assignment.rows(half)) for half in halves]
        _equal(density.log_density(density.estimate(parts[0] + parts[1]), tile), log_density)

    yield "the statistics of all rows are the sum of those of the parts", adds_up

    def weights() -> None:
        repeated = np.repeat(np.arange(n), weight.astype(int))
        one = Assignment(component[repeated], np.ones(len(repeated)), _N_COMPONENTS)
        _equal(density.log_density(estimated(tile.rows(repeated), one), tile), log_density)

    yield "a row of weight 2 counts as two equal rows", weights

    def order() -> None:
        moved = rng.permutation(n)
        _equal(density.log_density(estimated(tile.rows(moved), assignment.rows(moved)), tile), log_density)

    yield "the order of rows changes nothing", order

    def renamed() -> None:
        turned = np.array([2, 0, 1], np.int32)
        other = estimated(tile, Assignment(turned[component], weight, _N_COMPONENTS))
        _equal(density.log_density(other, tile)[:, turned], log_density)

    yield "components are exchangeable", renamed

    def without_rows() -> None:
        of_two = Assignment((component % 2).astype(np.int32), weight, _N_COMPONENTS)
        found = density.log_density(estimated(tile, of_two), tile)
        _require(not np.isnan(found).any(), "It is NaN")

    yield "a component without rows has a density", without_rows


def _laws_of_rows(
    density: Any, parameters: Any, tile: Any, log_density: Array, rng: np.random.Generator
) -> Iterator[Law]:
    def alone() -> None:
        few = np.arange(min(len(log_density), _SINGLE_ROWS))
        each = [density.log_density(parameters, tile.rows(np.array([i]))) for i in few]
        _equal(np.concatenate(each), log_density[few])

    yield "a row is scored alone as among others", alone

    def unknown() -> None:
        empty = np.zeros_like(tile.values[:1]) if isinstance(tile, Codes) else np.full_like(tile.values[:1], np.nan)
        nothing = Codes(empty, tile.cardinalities) if isinstance(tile, Codes) else Numbers(empty)
        _equal(density.log_density(parameters, nothing), np.zeros((1, _N_COMPONENTS)))

    yield "a row without cells has the density 1", unknown

    def drawn() -> None:
        cells = density.sample(parameters, np.arange(_N_DRAWN, dtype=np.int32) % _N_COMPONENTS, rng)
        if isinstance(tile, Codes):
            _require((cells >= 1).all() and (cells <= np.array(tile.cardinalities)).all(), "A code is out of range")
            return
        _require(not np.isnan(cells).any(), "A cell is missing")
        _require(not density.out_of_support(Numbers(cells)).any(), "A cell is out of the support")

    yield "drawn cells are present and in the support", drawn


def _laws_of_model(estimator: Classifier, X: pl.DataFrame, y: Array) -> Iterator[Law]:
    model = clone(estimator).fit(X, y)
    posterior = model.predict_proba(X)
    log_posterior = model.predict_log_proba(X)

    def is_distribution() -> None:
        _require((posterior >= 0).all(), "A probability is negative")
        _equal(posterior.sum(axis=1), np.ones(len(X)))
        _equal(np.exp(log_posterior), posterior)

    yield "p(y | x) is a distribution, and predict_log_proba its logarithm", is_distribution
    yield (
        "predict gives a class of the greatest probability",
        lambda: _equal(
            posterior[np.arange(len(X)), np.searchsorted(model.classes_, model.predict(X))], posterior.max(1)
        ),
    )
    yield (
        "a row without cells has the class prior",
        lambda: _equal(model.predict_proba(X.clear(1))[0], model.class_prior_, 1e-6),
    )
    yield "a row is predicted alone as among others", lambda: _equal(model.predict_proba(X[:1])[0], posterior[0])

    def order() -> None:
        moved = np.random.default_rng(0).permutation(len(X))
        _equal(model.predict_proba(X[moved]), posterior[moved])

    yield "the order of rows changes no prediction", order
    if isinstance(model, GenerativeEstimator):
        joint = model.predict_joint_log_proba(X)
        yield (
            "log p(x) is the sum of p(x, y) over the classes",
            lambda: _equal(np.logaddexp.reduce(joint, axis=1), model.score_samples(X)),
        )

    def files() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.posteriori"
            save(model, path)
            _equal(load(path).predict_proba(X), posterior)

    yield "a model file keeps all predictions", files

    def again() -> None:
        _equal(clone(estimator).fit(X, y).predict_proba(X), posterior)

    yield "a second fit gives the same model", again
