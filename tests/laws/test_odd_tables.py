"""What `fit` learns from an odd table, `save` writes and `load` gives back bit for bit; or `fit` says why not.

A warning of NumPy in a fit is an error, as any warning in a test is. Infinite numbers have one answer in every call.
"""

import copy
import functools
import inspect
import warnings

import numpy as np
import polars as pl
import pytest

import posteriori as po
from fuzz.estimators import is_refused
from tests.laws.models import CASES

REGRESSORS = {
    "additive": lambda: po.AdditiveRegressor(folds=3, random_state=0),
    "kernel": lambda: po.KernelRegressor(folds=3, random_state=0),
    "regressor": lambda: po.GenerativeRegressor(folds=3, random_state=0, n_jobs=1),
}
TABLES_ALONE = {
    "joint model": lambda: po.JointModel(random_state=0, n_jobs=1),
    "imputer": lambda: po.GenerativeImputer(method="joint", n_jobs=1),
}
MODELS = [*CASES, *REGRESSORS, *TABLES_ALONE]


def usual(n=120, counts=False, seed=0):
    """Return columns that depend on each other, and a number that depends on them."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=n)
    if counts:
        columns = {f"x{j}": rng.poisson(np.exp(0.5 * hidden)).astype(float) for j in range(3)}
    else:
        columns = {f"x{j}": np.round(hidden + rng.normal(size=n), 3) for j in range(2)}
        columns["c"] = np.array(["red", "green", "blue"], dtype=object)[(hidden > 0) + rng.integers(0, 2, n)]
    return pl.DataFrame(columns), hidden + rng.normal(size=n) / 2, np.ones(n)


def _with(n, **column):
    X, y, weight = usual(n)
    return X.with_columns(**column), y, weight


def _names(n_rows, n_categories):
    return pl.Series([f"t{k * 7919 % n_categories}" for k in range(n_rows)])


def _of_classes(y, few=False):
    labels = np.where(y > 0, "yes", "no").astype(object)
    if few:
        labels[:3] = "rare"
    return labels


def _largest(counts):
    X, y, weight = usual(counts=counts)
    values = X["x0"].to_numpy().copy()
    values[5] = 1e300
    return X.with_columns(x0=values), y, weight


def _zero_weights(counts):
    X, y, weight = usual(counts=counts)
    return X, y, np.where(np.arange(120) % 3, weight, 0.0)


def _two_weights(counts):
    X, y, weight = usual(12, counts)
    return X, y, np.where(np.isin(np.arange(12), [int(y.argmin()), int(y.argmax())]), weight, 0.0)


def _constant(counts):
    X, y, weight = usual(30, counts)
    return pl.concat([X[:1]] * 30), y, weight


def _scaled(factor, counts):
    if counts:
        return None
    X, y, weight = usual(30)
    return X.with_columns(pl.selectors.float() * factor), y, weight


def _twice(counts):
    X, y, weight = usual(60, counts)
    return pl.concat([X, X]), np.concatenate([y, y]), np.concatenate([weight, weight])


# Each takes whether columns hold counts, and returns columns, numbers to predict, and weights; None if there is no such
# table of counts.
TABLES = {
    "2,000 categories": lambda counts: None if counts else _with(4500, t=_names(4500, 2000)),
    "one row per category": lambda counts: None if counts else _with(150, t=_names(150, 150)),
    "a class of three rows": lambda counts: usual(counts=counts),
    "a constant column": lambda counts: (
        usual(counts=counts)[0].with_columns(k=pl.lit(7.0)),
        *usual(counts=counts)[1:],
    ),
    "an empty column": lambda counts: (
        None if counts else _with(120, k=pl.lit(None, pl.Float64), e=pl.lit(None, pl.String))
    ),
    "rows of weight 0": _zero_weights,
    "every row twice": _twice,
    "a number of 1e300": _largest,
    "three rows": lambda counts: usual(3, counts),
    "two rows": lambda counts: usual(2, counts),
    "one row": lambda counts: usual(1, counts),
    "constant columns": _constant,
    "two rows of weight": _two_weights,
    "numbers near 1e150": lambda counts: _scaled(1e150, counts),
    "numbers near 1e-150": lambda counts: _scaled(1e-150, counts),
}


@functools.cache
def table(name, counts):
    return TABLES[name](counts)


def fitted(model, name):
    """Return a model fitted to a table and rows to ask it about; None and the sentence if it is refused."""
    counts = model in CASES and CASES[model].takes == "counts"
    drawn = table(name, counts)
    if drawn is None:
        pytest.skip("a column of counts has no categories and no gaps")
    X, y, weight = drawn
    weights = {} if weight.all() else {"sample_weight": weight}
    if model in REGRESSORS:
        return REGRESSORS[model]().fit(X, y, **weights), X
    if model in TABLES_ALONE:
        estimator = TABLES_ALONE[model]()
        return (estimator.fit(X) if model == "imputer" else estimator.fit(X, **weights)), X
    case = CASES[model].on_few_tables()
    if case.takes == "categories":
        X = X.select(pl.col(pl.String))
    labels = _of_classes(y, few=name == "a class of three rows")
    return (case.make().fit(X, labels, **weights) if case.has_labels else case.make().fit(X)), X


def answers(estimator, X):
    """Return the answers of an estimator to rows, as bytes."""
    names = ("predict_proba", "predict_quantiles", "score_samples")
    if isinstance(estimator, po.JointModel):
        names = ("score_samples", "score_cells")
        yield repr(estimator.impute(X, "joint").rows())
    for name in names:
        if hasattr(estimator, name):
            answered = []
            ask = functools.partial(getattr(estimator, name), X)
            # Some scores of words are no density.
            refused = is_refused(lambda ask=ask, answered=answered: answered.append(ask()), type(estimator))
            yield "refused" if refused else np.asarray(answered[0]).tobytes()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("model", MODELS)
def test_what_an_odd_table_gives_is_loaded_as_it_was(model, name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the fit, which its own tests expect
        learned = []
        if is_refused(lambda: learned.extend(fitted(model, name)), po.NaiveBayes):
            return
        estimator, X = learned
        kept = estimator.model_ if isinstance(estimator, po.GenerativeImputer) else estimator
        path, rows = tmp_path / "model", X[:200]
        po.save(kept, path)
        before, after = (list(answers(one, rows)) for one in (kept, po.load(path)))
        assert before == after
        assert before


# Cells that no call takes ---------------------------------------------------------------------------------------------


INFINITE = "Input X contains infinity: column 'x0' holds -?inf in row [01]; replace it by a number, or by NaN if it is"
INFINITE_COUNT = f"{INFINITE}|column 'x0' holds -?inf"
# What a method takes beside the rows.
ARGUMENTS = {
    "y": lambda X, y: y,
    "target": lambda X, y: "c" if "c" in X.columns else "x1",
    "label": lambda X, y: y[0],
    "decision": lambda X, y: None,
}


def calls_with_rows(estimator):
    """Yield the name of each public method of an estimator that takes rows, and the names of its other arguments."""
    for name in dir(type(estimator)):
        method = getattr(type(estimator), name, None)
        if not name.startswith(("_", "set_")) and callable(method):
            _, *names = inspect.signature(method).parameters
            if names[:1] == ["X"]:
                yield name, names[1:]


def with_number(X, number):
    """Return three rows of a table, with a number in the second one."""
    return X[:3].with_columns(x0=pl.Series([1.0, number, 2.0]))


@pytest.mark.parametrize("model", MODELS)
def test_every_call_refuses_infinity_in_the_words_of_fit(model):
    case = CASES.get(model)
    if case is not None and case.takes == "categories":
        pytest.skip("it takes no numbers")
    words = INFINITE_COUNT if case is not None and case.takes == "counts" else INFINITE
    refused = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        estimator, X = fitted(model, "a constant column")
        labels = getattr(estimator, "classes_", [0.5, 1.5])
        y = None if model in TABLES_ALONE or model == "mixture" else [labels[0], labels[1], labels[0]]
        for name, others in calls_with_rows(estimator):

            def call(number, name=name, others=others):
                more = {one: ARGUMENTS[one](X, y) for one in others if one in ARGUMENTS}
                return getattr(copy.deepcopy(estimator), name)(with_number(X, number), **more)

            if not is_refused(functools.partial(call, 3.0), type(estimator)):  # whatever the numbers
                for number in (np.inf, -np.inf):
                    with pytest.raises(ValueError, match=words):
                        pytest.fail(f"{name} takes {number}: {call(number)}")
                refused.append(name)
        if hasattr(estimator, "scorer") and model != "regressor":
            score = estimator.scorer()
            with pytest.raises(ValueError, match=words):
                score(with_number(X, np.inf).row(1, named=True))
    assert len(refused) > 1
