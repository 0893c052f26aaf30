"""Missing cells of models with several parents: their sums against enumeration of every completion."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone

import posteriori as po
from posteriori.densities import AveragedOneDependence, BackOff, FamilyTables, KDependence, dependence
from posteriori.densities.refinement import finish
from posteriori.model import log_marginal_of_codes
from posteriori.tables.batch import Assignment, Codes

SMOOTHING = [BackOff(), BackOff(2.0, 0.3), BackOff(0.0, 0.0), BackOff(None, 0.5)]

tables = st.tuples(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 4), min_size=1, max_size=6),
    st.integers(1, 3),
    st.sampled_from([0.1, 0.4, 0.7]),
)
densities = st.one_of(
    st.builds(KDependence, st.integers(0, 3), st.sampled_from(SMOOTHING)),
    st.builds(AveragedOneDependence, st.sampled_from(SMOOTHING)),
)


def draw_rows(seed, cardinalities, n_components, missing, n=40):
    """Return rows of dependent columns with gaps, and their components."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 4, n)
    codes = np.column_stack([(hidden * (rng.random(n) < 0.7) + rng.integers(0, k, n)) % k + 1 for k in cardinalities])
    codes[rng.random(codes.shape) < missing] = 0
    return codes.astype(np.uint8), rng.integers(0, n_components, n).astype(np.int32)


def fit(density, codes, component, cardinalities, n_components, weight=None):
    """Return a density whose structure is chosen, its statistics and its parameters."""
    tile = Codes(codes, cardinalities)
    labels = Assignment(component, np.ones(len(codes)) if weight is None else weight, n_components)
    statistics = density.sufficient_statistics.of(tile, labels)
    if isinstance(density, KDependence):
        density, statistics = finish(
            density.refine(statistics), lambda sufficient_statistics: sufficient_statistics.of(tile, labels)
        )
    return density, statistics, density.estimate(statistics)


def completions(row, cardinalities):
    """Return every complete row that agrees with the present cells of a row."""
    cells = [[code] if code else range(1, k + 1) for code, k in zip(row.tolist(), cardinalities, strict=True)]
    return np.array(list(itertools.product(*cells)), np.uint8)


def enumerated(density, parameters, row, cardinalities):
    """Return log Σ over all completions of p(x | z), (Z,)."""
    rows = completions(row, cardinalities)
    return logsumexp(density.log_density(parameters, Codes(rows, cardinalities)), axis=0)


@given(tables, densities)
def test_missing_cells_are_summed_out(drawn, density):
    _seed, cardinalities, n_components, _missing = drawn
    cardinalities = tuple(cardinalities)
    codes, component = draw_rows(*drawn)
    density, _, parameters = fit(density, codes, component, cardinalities, n_components)
    found = density.log_density(parameters, Codes(codes, cardinalities))
    expected = np.array([enumerated(density, parameters, row, cardinalities) for row in codes])
    assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@given(tables, densities)
def test_factors_are_those_of_the_chain_rule(drawn, density):
    _seed, cardinalities, n_components, _missing = drawn
    cardinalities = tuple(cardinalities)
    codes, component = draw_rows(*drawn, n=12)
    density, _, parameters = fit(density, codes, component, cardinalities, n_components)
    factors = density.log_factors(parameters, Codes(codes, cardinalities))
    order = range(len(cardinalities))
    if isinstance(density, KDependence):
        order = parameters.tables.families.order.tolist()
    for row, found in zip(codes, factors, strict=True):
        shown, before = np.zeros_like(row), np.zeros(n_components)
        for j in order:
            shown[j] = row[j]
            after = enumerated(density, parameters, shown, cardinalities)
            possible = before > -np.inf
            assert_allclose(found[possible, j], (after - np.where(possible, before, 0.0))[possible], atol=1e-10)
            assert (found[~possible, j] <= 0.0).all()
            before = after


@given(tables, st.integers(1, 3), st.sampled_from(SMOOTHING))
def test_leave_one_out_sums_over_tables_without_the_row(drawn, k, smoothing):
    seed, cardinalities, n_components, _missing = drawn
    cardinalities = tuple(cardinalities)
    codes, component = draw_rows(*drawn, n=60)
    weight = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 3.3], len(codes))
    density, statistics, parameters = fit(
        KDependence(k, smoothing), codes, component, cardinalities, n_components, weight
    )
    given_labels = Assignment(component, weight, n_components)
    found = density.left_out(parameters, statistics, Codes(codes, cardinalities), given_labels)
    for i in range(len(codes)):
        if np.isnan(found[i]).any():
            continue
        own = Codes(codes[[i]], cardinalities)
        rest = density.estimate(statistics.without(own, given_labels.rows(np.array([i]))))
        assert_allclose(found[i], density.log_factors(rest, own)[0], rtol=1e-9, atol=1e-9)


def test_leave_one_out_has_a_closed_form_if_a_parent_is_missing():
    cardinalities = (2, 3, 2, 3)
    codes, component = draw_rows(0, cardinalities, 2, 0.3, n=400)
    density, statistics, parameters = fit(KDependence(2, BackOff()), codes, component, cardinalities, 2)
    labels = Assignment(component, np.ones(len(codes)), 2)
    assert (codes[:, parameters.tables.inner] == 0).any(axis=1).sum() > 100
    assert not np.isnan(density.left_out(parameters, statistics, Codes(codes, cardinalities), labels)).any()


@pytest.mark.parametrize("density", [KDependence(2, BackOff()), AveragedOneDependence(BackOff())])
def test_a_column_that_had_no_category_is_not_summed_over(density):
    codes, component = draw_rows(1, (2, 3, 2), 2, 0.2)
    empty = np.insert(codes, 1, 0, axis=1)
    cardinalities = (2, 0, 3, 2)
    _, _, parameters = fit(density, empty, component, cardinalities, 2)
    found = density.log_density(parameters, Codes(empty, cardinalities))
    assert np.isfinite(found).all()
    grid = np.insert(completions(np.zeros(3, np.uint8), (2, 3, 2)), 1, 0, axis=1)
    assert_allclose(logsumexp(density.log_density(parameters, Codes(grid, cardinalities)), axis=0), 0.0, atol=1e-12)


def test_sums_stay_exact_where_probabilities_underflow():
    """The parent of a thousand children, missing: their product is below the smallest number."""
    rng = np.random.default_rng(0)
    d = 1000
    parents = ((), *(((0,),) * (d - 1)))
    prior = np.log(np.array([0.3, 0.7]))
    given_parent = np.log(rng.dirichlet([1.0, 1.0], (d - 1, 2)))
    padded = [np.zeros((1, 3)), *(np.zeros((1, 3, 3)) for _ in range(d - 1))]
    padded[0][0, 1:] = prior
    for table, one in zip(padded[1:], given_parent, strict=True):
        table[0, 1:, 1:] = one
    tables = FamilyTables.of(parents, padded)
    row = rng.integers(1, 3, d).astype(np.uint8)
    row[0] = 0
    terms = prior + given_parent[np.arange(d - 1), :, row[1:] - 1].sum(axis=0)
    assert terms.max() < -745.0
    assert_allclose(tables.log_density(row[np.newaxis], 1 << 20)[0, 0], logsumexp(terms), rtol=1e-12)


# The approximation -----------------------------------------------------------------------------------------------


def without(tables, dropped):
    """Return the tables in which children are taken given their other parents."""
    parents = tuple(tuple(p for p in of_j if not dropped[p]) for of_j in tables.parents)
    sliced = [
        tables.table(j)[(slice(None), *(0 if dropped[p] else slice(None) for p in of_j))]
        for j, of_j in enumerate(tables.parents)
    ]
    return FamilyTables.of(parents, sliced)


def known_and(tables, row, upto, dropped=None):
    """Return the part of the sum of the first columns that has no sum in it, (Z,): the other part of `sum_out`."""
    gone = np.zeros(len(row), bool) if dropped is None else dropped
    hidden: set[int] = set()
    for j in reversed(tables.order[:upto]):
        if row[j] or j in hidden:
            hidden |= {p for p in tables.parents[j] if not row[p] and tables.cardinalities[p] and not gone[p]}
    total = np.zeros(tables.log_probability.shape[1])
    for j in tables.order[:upto]:
        if row[j] and not hidden & set(tables.parents[j]):
            total += tables.table(j)[(slice(None), *row[list(tables.parents[j])], row[j])]
    return total


@given(tables, st.integers(2, 3), st.integers(4, 64))
def test_children_of_a_dropped_column_keep_their_other_parents(drawn, k, most_cells):
    _seed, cardinalities, n_components, _missing = drawn
    cardinalities = tuple(cardinalities)
    codes, component = draw_rows(*drawn)
    parameters = fit(KDependence(k, BackOff()), codes, component, cardinalities, n_components)[2].tables
    found = parameters.log_density(codes, most_cells)
    for row, one in zip(codes, found, strict=True):
        dropped = parameters.dropped(row[np.newaxis], most_cells)
        assert not row[dropped].any()
        assert_allclose(one, without(parameters, dropped).log_density(row[np.newaxis], 1 << 40)[0], atol=1e-10)


def test_what_is_not_summed_out_exactly_is_named(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, 400)
    frame = pl.DataFrame({name: ((x + (rng.random(400) < 0.2)) % 6).astype(str) for name in "abcdef"})
    y = x % 2
    model = po.KDependenceBayes(3).fit(frame, y)
    gaps = frame.with_columns(pl.when(pl.Series(rng.random(400) < 0.4)).then(name).alias(name) for name in "abcdef")
    exact = model.predict_joint_log_proba(gaps)  # a warning would be an error
    monkeypatch.setattr(dependence, "MOST_CELLS", 100)
    with pytest.warns(UserWarning, match=r"lower-order approximation .* for the children of column"):
        near = model.predict_joint_log_proba(gaps)
    assert (near != exact).any()
    with pytest.warns(UserWarning, match="lower-order approximation"):
        assert_allclose(model.explain(gaps).log_joint, near, rtol=1e-9)
    assert_array_equal(model.predict_joint_log_proba(frame).shape, exact.shape)  # complete rows: no warning


def test_the_bound_that_spares_planning_is_safe():
    """Every pattern of missing cells that the bound lets pass is one whose plan fits."""
    cardinalities = (3, 1, 2, 4, 2, 3)
    codes, component = draw_rows(0, cardinalities, 1, 0.0)
    parameters = fit(KDependence(3, BackOff()), codes, component, cardinalities, 1)[2].tables
    patterns = np.array(list(itertools.product([0, 1], repeat=6)), np.uint8)
    for most_cells in (4, 16, 64, 256):
        bits = np.log2(np.maximum(np.array(cardinalities)[parameters.inner], 2))
        free = (patterns[:, parameters.inner] == 0) @ bits <= math.log2(most_cells) - 1.0
        assert free.any()
        dense = parameters.log_density(patterns[free], most_cells)
        assert_allclose(dense, parameters.log_density(patterns[free], 1 << 40), rtol=1e-13)


@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([1 << 17, 600, 60]))
def test_all_sums_of_a_row_are_those_of_each_entry_alone(seed, k, most_cells):
    """Forward sums, which the entries of a row share, against elimination, which is planned for each entry."""
    rng = np.random.default_rng(seed)
    cardinalities = tuple(rng.integers(1, 5, 14).tolist())
    codes, component = draw_rows(seed, cardinalities, 2, 0.5, n=30)
    parameters = fit(KDependence(k, BackOff()), codes, component, cardinalities, 2)[2].tables
    rows = np.repeat(np.arange(len(codes)), 14)
    upto = np.tile(np.arange(1, 15), len(codes))
    together = parameters.sum_out(codes, rows, upto, most_cells)
    for e, (row, n) in enumerate(zip(rows.tolist(), upto.tolist(), strict=True)):
        kept = parameters
        dropped = parameters.dropped(codes[[row]], most_cells)
        if dropped.any():  # a row has one set of dropped columns, whatever the entry
            kept = without(parameters, dropped)
            kept = FamilyTables(kept.parents, kept.cardinalities, parameters.order, kept.offsets, kept.log_probability)
        alone = kept.sum_out(codes, np.array([row]), np.array([n]), 1 << 40)[0]
        assert_allclose(
            known_and(kept, codes[row], n) + alone,
            known_and(parameters, codes[row], n, dropped) + together[e],
            atol=1e-9,
        )


@pytest.mark.parametrize("least", [1e-3, 1e-40, 1e-300])
def test_sums_do_not_lose_what_is_unlikely_for_a_while(least):
    """Ten children make the first value of their parent unlikely, ten others make up for it."""
    likely, unlikely = np.log([1.0 - least, least]), np.log([least, 1.0 - least])
    child = np.zeros((1, 3, 3))
    child[0, 1, 1:], child[0, 2, 1:] = likely, unlikely
    root = np.zeros((1, 3))
    root[0, 1:] = np.log(0.5)
    tables = FamilyTables.of(((), *[(0,)] * 20), [root, *[child] * 20])
    codes = np.array([[0, *[2] * 10, *[1] * 10]], np.uint8)
    sums = tables.sum_out(codes, np.zeros(20, np.int64), np.arange(2, 22), 1 << 17)[:, 0]
    of_first = np.log(0.5) + np.cumsum([likely[code - 1] for code in codes[0, 1:]])
    of_second = np.log(0.5) + np.cumsum([unlikely[code - 1] for code in codes[0, 1:]])
    assert_allclose(sums, np.logaddexp(of_first, of_second), rtol=1e-12)


# Classifiers -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 3, 500)
    columns = {
        name: ((x + rng.integers(0, 2, 500)) % (2 + position % 3)).astype(str) for position, name in enumerate("abcde")
    }
    rows = pl.DataFrame(columns)
    holes = {name: pl.Series(rng.random(500) < 0.25) for name in rows.columns}
    return rows.select(pl.when(~hole).then(name).alias(name) for name, hole in holes.items()), (x + (x > 1)) % 3


MODELS = {
    **{f"kdb {k}": po.KDependenceBayes(k) for k in range(4)},
    "kdb weighted": po.KDependenceBayes(2, feature_weights="conditional"),
    "aode": po.AveragedOneDependence(),
}


@pytest.mark.parametrize("name", MODELS)
def test_explanations_of_rows_with_gaps_are_exact_sums(name, frame):
    X, y = frame
    model = MODELS[name].fit(X, y)
    explanation = model.explain(X)
    assert_allclose(explanation.posterior, model.predict_proba(X), atol=1e-12)
    if name != "kdb weighted":
        assert_allclose(explanation.log_joint, model.predict_joint_log_proba(X), rtol=1e-9)
        assert_allclose(model.score_samples(X), logsumexp(explanation.log_joint, axis=1), rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_a_category_that_is_new_is_a_missing_cell(name, frame):
    X, y = frame
    model = MODELS[name].fit(X, y)
    strange = X[:50].with_columns(pl.lit("never seen").alias("a"), pl.lit("neither").alias("c"))
    gone = X[:50].with_columns(pl.lit(None, pl.String).alias("a"), pl.lit(None, pl.String).alias("c"))
    with pytest.warns(UserWarning, match=r"seen|new|unknown|categor"):
        found = model.predict_proba(strange)
    assert_array_equal(found, model.predict_proba(gone))


@pytest.mark.parametrize("k", range(4))
def test_the_network_agrees_for_every_pattern_of_missing_cells(k, frame):
    X, y = frame
    model = po.KDependenceBayes(k).fit(X, y)
    network = model.to_network()
    values = [[*X[name].drop_nulls().unique().sort().to_list(), None] for name in X.columns]
    grid = pl.DataFrame(list(itertools.product(*values)), schema=dict.fromkeys(X.columns, pl.String), orient="row")
    assert_allclose(network.predict_proba(grid, "class"), model.predict_proba(grid), atol=1e-10)
    assert_allclose(network.log_likelihood(grid), model.score_samples(grid), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["kdb 2", "aode"])
def test_information_is_that_of_the_marginals(name, frame):
    X, y = frame
    model = MODELS[name].fit(X, y).model_
    codes = Codes(np.zeros((1, 5), np.uint8), model.schema.cardinalities(range(5)))
    density, parameters = model.blocks[0].density, model.parameters[0]
    for j, k in enumerate(codes.cardinalities):
        for code in range(1, k + 1):
            row = codes.values[0].copy()
            row[j] = code
            expected = enumerated(density, parameters, row, codes.cardinalities)
            assert_allclose(log_marginal_of_codes(model, j)[code - 1], expected, rtol=1e-10)


@pytest.mark.parametrize("name", ["kdb 1", "kdb 2", "aode"])
def test_models_of_pieces_agree_on_rows_with_gaps(name, frame):
    X, y = frame
    whole, parts = (clone(MODELS[name]) for _ in range(2))
    whole.fit(X, y)
    parts.partial_fit(X, y)
    doubled = parts.partial_fit(X, y)
    again = clone(whole).fit(pl.concat([X, X]), np.concatenate([y, y]))
    assert_allclose(doubled.predict_joint_log_proba(X), again.predict_joint_log_proba(X), rtol=1e-9)
