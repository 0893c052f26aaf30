"""Laws of every model: a column without information on the class, an order, a name and a unit change no posterior.

`EXCEPTIONS` holds what breaks a law by its definition, or is not mended yet, with the reason: each is a strict xfail.
"""

import functools
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from posteriori.densities.registry import REGISTRY
from posteriori.registry import MODELS
from tests.laws.models import CASES, EXCLUDED
from tests.laws.tables import Table, answers, is_number, symmetric_tables, tables

COUNTS = [case.name for case in CASES.values() if case.takes == "counts"]
SPHERICAL = [name for name in CASES if name.startswith("gda spherical")]
DRAWS = dict.fromkeys(["nb components", "mixture"], "EM starts at random rows, and ends in one of several optima")
# `fit` raises ValueError.
REFUSED = {
    name: "a cell without a count is an error: 0 means that the word does not occur"
    for name in COUNTS
    if not CASES[name].takes_missing
} | {
    "gda ledoit-wolf": "the estimate of the shrinkage is of rows without missing cells, and none is left",
    "gda weighted": "weights are learned by leave-one-out, which has no closed form after EM over missing cells",
    "full joint": "a column without a value has no cells",
}
# Models whose posterior has no limit of the form 1/k.
NOT_IN_PROPORTION = {
    "pool": "the penalty of its weights fades, and folds are dealt by the hashes of weights",
    "mixture": DRAWS["mixture"],
    "residual trees": "trees are grown until held-out rows are predicted best",
    **{name: "trees grow at random, until leaves are pure" for name in CASES if name.startswith("forest")},
    **{
        name: "the penalty of learned weights fades, and weights that separate the classes grow without limit"
        for name, case in CASES.items()
        if getattr(case.make(), "feature_weights", None) is not None
    },
}
EXCEPTIONS = {
    "empty columns": DRAWS
    | REFUSED
    | dict.fromkeys(SPHERICAL, "one variance of all columns, in data units, is also that of an empty one"),
    "constant columns": DRAWS
    | dict.fromkeys(COUNTS, "a word that never occurs has a share of the smoothing: it is part of the vocabulary")
    | dict.fromkeys(SPHERICAL, "one variance of all columns, in data units, is also that of a constant one"),
    "order of columns": DRAWS
    | {"gda weighted": "weights multiply the factors p(x_j | columns before j, y) of the chain rule"},
    "names of classes": {"nb components": DRAWS["nb components"]},
    "names of categories": DRAWS,
    "order of columns of symmetric tables": DRAWS
    | {"gda weighted": "weights multiply the factors p(x_j | columns before j, y) of the chain rule"},
    "units": DRAWS
    | {name: "a count has no unit" for name in COUNTS if "presence" not in name}
    | dict.fromkeys(SPHERICAL, "one variance of all columns, in data units"),
    "units by powers of two": DRAWS
    | {name: "a count has no unit" for name in COUNTS if "presence" not in name}
    | dict.fromkeys(SPHERICAL, "one variance of all columns, in data units"),
    "offset": DRAWS | dict.fromkeys(COUNTS, "a count has no offset"),
}


def test_every_model_and_density_of_the_registries_has_laws():
    assert MODELS.keys() == (CASES.keys() | EXCLUDED.keys()) & MODELS.keys()
    assert not CASES.keys() & EXCLUDED.keys()
    named = {f"nb of {entry.density.name}" for entry in REGISTRY if entry.options is not None}
    assert named <= CASES.keys()
    for of_law in EXCEPTIONS.values():
        assert of_law.keys() <= CASES.keys()


def errors_of(law, name):
    """Return the errors of an exception: a refused table, another posterior, or a number that is no count."""
    if law == "empty columns" and name in REFUSED:
        return ValueError
    is_no_count = name in COUNTS and law in ("units", "units by powers of two", "offset")
    return (AssertionError, ValueError) if is_no_count else AssertionError


def every_model(law, of=tables):
    """Run a law on random tables for every model; strict xfail for its exceptions."""
    of_law = law.__name__.removeprefix("test_").replace("_", " ")
    marks = {
        name: [pytest.mark.xfail(reason=reason, raises=errors_of(of_law, name), strict=True)]
        for name, reason in EXCEPTIONS.get(of_law, {}).items()
    }
    quick = [
        pytest.param(case.on_few_tables(), 20 if name in marks else 2, marks=marks.get(name, []), id=name)
        for name, case in CASES.items()
        if not case.is_variant
    ]
    thorough = [
        pytest.param(case, 20, marks=marks.get(name, []), id=f"{name}, 20 tables") for name, case in CASES.items()
    ]

    @pytest.mark.parametrize(("case", "examples"), [*quick, *thorough])
    def run(case, examples):
        if case.is_costly:
            examples = max(1, examples // 10)

        # No shrinking, and no table after one that fails: an exception is expected to fail.
        @settings(
            max_examples=examples, phases=[Phase.explicit, Phase.generate], database=None, report_multiple_bugs=False
        )
        @given(table=of(case))
        def on(table):
            law(case, table)

        on()

    run.__doc__ = law.__doc__
    return run


@functools.lru_cache(maxsize=4096)
def answers_once(case, pickled):
    """Return the answers to a table; the laws of a model meet the same tables."""
    return answers(case, pickle.loads(pickled))


def assert_same(case, table, changed, back=lambda posterior: posterior, atol=1e-9):
    """Assert that a changed table gives the same posteriors; `back` undoes the change on those of the changed one."""
    assert_allclose(back(answers(case, changed)), answers_once(case, pickle.dumps(table)), atol=atol, rtol=0.0)


@every_model
def test_empty_columns(case, table):
    empty = {"e": np.array([None] * table.n_rows, dtype=object)}
    if case.takes != "categories":
        empty["f"] = empty["g"] = np.full(table.n_rows, np.nan)
    # The steps of SQUAREM, by which EM of covariances goes on in a fold, multiply what is rounding in other models, and
    # the optimum of the weights moves with them.
    assert_same(case, table, table.with_columns(**empty), atol=1e-5 if case.name == "pool" else 1e-9)


@every_model
def test_constant_columns(case, table):
    """Also beside numbers alone: a number whose parent is another category does not show what a constant one does."""
    numbers = {} if case.takes == "categories" else {"e": np.full(table.n_rows, 3.5), "f": np.full(table.n_rows, 3.5)}
    if case.takes == "counts":
        numbers = {name: np.zeros(table.n_rows) for name in numbers}
    else:
        numbers["g"] = numbers["h"] = np.array(["k"] * table.n_rows, dtype=object)
    assert_same(case, table, table.with_columns(**numbers))
    if case.takes == "mixed":
        alone = table.only(table.numbers())
        assert_same(case, alone, alone.with_columns(**numbers))


@every_model
def test_order_of_rows(case, table):
    order = np.random.default_rng(0).permutation(table.n_rows)
    assert_same(case, table, table.rows(order), lambda posterior: posterior[np.argsort(order)])


@every_model
def test_order_of_columns(case, table):
    assert_same(case, table, replace(table, columns=dict(reversed(table.columns.items()))))


def of_symmetric(case):
    """Return the tolerance: rounding decides about the last step to learned weights: 1e-8 nats."""
    return {"pool": 1e-4, "cells": 1e-3}.get(case.name, 1e-9)


@functools.partial(every_model, of=symmetric_tables)
def test_order_of_rows_of_symmetric_tables(case, table):
    """Bins and folds are dealt by cells, and rows that a symmetry exchanges have equal hashes."""
    order = np.random.default_rng(0).permutation(table.n_rows)
    back = lambda posterior: posterior[np.argsort(order)]  # noqa: E731
    assert_same(case, table, table.rows(order), back, atol=of_symmetric(case))


@functools.partial(every_model, of=symmetric_tables)
def test_order_of_columns_of_symmetric_tables(case, table):
    """Only names distinguish columns that a symmetry exchanges, so that these break the last ties."""
    moved = table.only(sorted(table.columns, key=lambda name: (name[1] in "02", name[::-1])))
    assert_same(case, table, moved, atol=of_symmetric(case))


@every_model
def test_rows_of_weight_zero(case, table):
    """Their number, their cells and their labels do not count: other combinations, outliers, gaps, categories."""
    rng = np.random.default_rng(0)
    more = 3 * table.n_rows
    others = {
        name: np.concatenate([cells, (3.0 * cells if is_number(cells) else cells)[rng.integers(0, table.n_rows, more)]])
        for name, cells in table.columns.items()
    }
    if case.takes_missing:
        for cells in others.values():
            cells[table.n_rows] = np.nan if is_number(cells) else None
    for cells in others.values():
        if not is_number(cells):
            cells[-1] = "only here"
    longer = Table(others, np.concatenate([table.y, rng.choice(table.y, more)]))
    weight = np.where(np.arange(longer.n_rows) < table.n_rows, 1.0, 0.0)

    def posterior(rows, weight):
        given = (rows.frame(), rows.y) if case.has_labels else (rows.frame(),)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return case.make().fit(*given, sample_weight=weight).predict_proba(table.frame())

    assert_allclose(posterior(longer, weight), posterior(table, np.ones(table.n_rows)), atol=1e-9, rtol=0.0)


@every_model
def test_names_of_columns(case, table):
    names = [chr(ord("z") - j) for j in range(len(table.columns))]
    assert_same(case, table, Table(dict(zip(names, table.columns.values(), strict=True)), table.y))


@every_model
def test_names_of_classes(case, table):
    _, code = np.unique(table.y, return_inverse=True)
    if case.has_labels:
        renamed = replace(table, y=np.array(["r", "q", "p"])[code])
        assert_same(case, table, renamed, lambda posterior: posterior[:, ::-1])


@every_model
def test_names_of_categories(case, table):
    def renamed(cells):
        names = sorted({cell for cell in cells if cell is not None})
        new = {name: f"v{len(names) - k:02}" for k, name in enumerate(names)}
        return np.array([None if cell is None else new[cell] for cell in cells], dtype=object)

    columns = {name: cells if is_number(cells) else renamed(cells) for name, cells in table.columns.items()}
    assert_same(case, table, replace(table, columns=columns))


@every_model
def test_k_times_the_rows(case, table):
    """Pseudo-counts and pseudo-rows are numbers of rows, so that k times the rows are O(1/k) from their limit.

    A weight of k stands for k copies. Twice the copies move a posterior by half of what is left to the limit: with 100
    times the copies, by a hundredth. Pseudo-rows that are learned grow with log k, and their EM stops at 0.1 %.
    """
    if case.name in NOT_IN_PROPORTION:
        pytest.skip(NOT_IN_PROPORTION[case.name])
    assume(not any(np.isnan(table.columns[name]).any() for name in table.numbers()))  # EM over gaps stops at its `tol`
    given = (table.frame(), table.y) if case.has_labels else (table.frame(),)

    def posterior(k):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return case.make().fit(*given, sample_weight=np.full(table.n_rows, k)).predict_proba(given[0])

    moved = [np.abs(posterior(2.0 * k) - posterior(k)).max() for k in (1e5, 1e7)]
    assert moved[1] <= (0.5 if "learned" in case.name else 0.03) * moved[0] + 1e-10


def with_numbers(table, change):
    columns = {
        name: change(j, cells) if is_number(cells) else cells for j, (name, cells) in enumerate(table.columns.items())
    }
    return replace(table, columns=columns)


@every_model
def test_units(case, table):
    assert_same(case, table, with_numbers(table, lambda j, cells: cells * (1e6, 1.0, 1e-6)[j % 3]))


@every_model
def test_units_by_powers_of_two(case, table):
    """One number lies so far beyond the others that its log density without its own row is about −700 nats."""
    first = np.arange(table.n_rows) == 0

    def far(deviations, j, cells):
        return np.where(first & (j == 0), np.round(np.nanmean(cells[1:]) + deviations * np.nanstd(cells[1:])), cells)

    is_weighted = getattr(case.make(), "feature_weights", None) == "conditional"
    for deviations in (32.0, 34.0, 36.0) if is_weighted else (34.0,):
        heavy = with_numbers(table, functools.partial(far, deviations))
        assert_same(case, heavy, with_numbers(heavy, lambda j, cells: cells * 2.0 ** (40, -40, 20)[j % 3]))


def scaled_tables(case):
    """Return a strategy of tables, each with a binary exponent of the numbers in it."""
    return st.tuples(tables(case), st.sampled_from([-520, 300, -300, 520, -480, -256, 256, 490, -540, -995, 995]))


@functools.partial(every_model, of=scaled_tables)
def test_extreme_scales(case, table):
    """From 1e-300 to 1e300 a model is right, or refuses with a sentence that names a column; a pool drops members."""
    table, exponent = table
    if case.name in COUNTS or case.name in DRAWS:
        pytest.skip(DRAWS.get(case.name, "a count has no unit"))
    scaled = with_numbers(table, lambda _, cells: cells * 2.0**exponent)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            model = case.fit(scaled)
        except ValueError as error:
            refused = [str(error)]
        else:
            refused = [reason for reason in getattr(model, "skipped_", {}).values() if "squares of" in reason]
            posterior = model.predict_proba(scaled.frame())
            assert np.isfinite(posterior).all()
    assert all(any(f"'{name}'" in reason for name in table.numbers()) for reason in refused)
    if not refused:
        assert_allclose(posterior, answers_once(case, pickle.dumps(table)), atol=1e-9, rtol=0.0)


@every_model
def test_offset(case, table):
    assert_same(case, table, with_numbers(table, lambda j, cells: cells + 2.0**30), atol=1e-6)
