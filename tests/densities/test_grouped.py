"""Dependences through groups of categories: sums to one, equality with dense tables, folds, files, samples, SQL."""

import itertools
import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import PredefinedSplit, cross_val_predict

import posteriori as po
from posteriori import densities
from posteriori.densities import AveragedOneDependence, BackOff, Grouped, KDependence, Tree
from posteriori.densities.grouped import GroupedParameters
from posteriori.densities.refinement import finish
from posteriori.fitting.rows import read_further_rows
from posteriori.model_cost import MANY_CATEGORIES, MOST_GROUPS
from posteriori.statistics.grouped import CountCategories, CountGrouped, Groups
from posteriori.tables.batch import Assignment, Codes, Mixed, Numbers

INNER = {
    "k-dependence": lambda: KDependence(2, BackOff(5.0)),
    "averaged": lambda: AveragedOneDependence(BackOff(5.0)),
    "tree": lambda: Tree(BackOff(5.0)),
}
ESTIMATORS = {
    "tan": po.TreeAugmentedNaiveBayes,
    "kdb": po.KDependenceBayes,
    "aode": po.AveragedOneDependence,
    "class-trees": po.classifiers.ChowLiuClassifier,
}


def tile_of(values, cardinalities, density):
    codes = Codes(np.ascontiguousarray(values), cardinalities)
    if density.kind != "mixed":
        return codes
    return Mixed(Numbers(np.empty((len(values), 0))), codes, (False,) * len(cardinalities))


def fitted(density, tile, assignment):
    """Return the refined density, its statistics and its parameters."""
    first = density.sufficient_statistics.of(tile, assignment)
    if hasattr(density, "refine"):
        density, first = finish(density.refine(first), lambda factory: factory.of(tile, assignment))
    return density, first, density.estimate(first)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    values = np.stack([rng.integers(0, k + 1, 300) for k in (6, 3, 2)], axis=1).astype(np.uint8)
    return values, Assignment(rng.integers(0, 2, 300).astype(np.int32), rng.random(300), 2)


GROUPS = Groups(((0, 1, 0, 2, 1, 0), (), (1, 0)))


@pytest.mark.parametrize("name", INNER)
def test_probabilities_of_all_rows_sum_to_one(name, rows):
    values, assignment = rows
    density = Grouped(INNER[name](), (0,), GROUPS)
    density, _, parameters = fitted(density, tile_of(values, (6, 3, 2), density), assignment)
    everything = np.array(list(itertools.product(range(1, 7), range(1, 4), range(1, 3))), np.uint8)
    log_density = density.log_density(parameters, tile_of(everything, (6, 3, 2), density))
    assert_allclose(np.exp(log_density).sum(axis=0), 1.0)
    factors = density.log_factors(parameters, tile_of(everything, (6, 3, 2), density))
    assert_allclose(factors.sum(axis=2), log_density)


@pytest.mark.parametrize("name", INNER)
def test_a_missing_category_is_summed_out(name, rows):
    values, assignment = rows
    density = Grouped(INNER[name](), (0,), GROUPS)
    density, _, parameters = fitted(density, tile_of(values, (6, 3, 2), density), assignment)
    each = np.array([(k, 2, 1) for k in range(1, 7)], np.uint8)
    summed = np.log(np.exp(density.log_density(parameters, tile_of(each, (6, 3, 2), density))).sum(axis=0))
    missing = density.log_density(parameters, tile_of(np.array([[0, 2, 1]], np.uint8), (6, 3, 2), density))
    assert_allclose(missing[0], summed)


@pytest.mark.parametrize("name", INNER)
def test_groups_of_one_category_equal_the_density_itself(name, rows):
    values, assignment = rows
    inner = INNER[name]()
    tile = tile_of(values, (6, 3, 2), inner)
    identity = Groups((tuple(range(6)), (0, 1, 2), ()))
    one, sums, parameters = fitted(Grouped(inner, (0, 1), identity), tile, assignment)
    other, _, dense = fitted(inner, tile, assignment)
    assert_allclose(one.log_density(parameters, tile), other.log_density(dense, tile), rtol=1e-12)
    assert_allclose(one.log_factors(parameters, tile), other.log_factors(dense, tile), rtol=1e-12, atol=1e-14)
    assert sums.column(0).sum() == pytest.approx(assignment.weight[values[:, 0] > 0].sum())


@pytest.mark.parametrize("name", INNER)
def test_samples_have_the_frequencies_of_the_density(name, rows):
    values, assignment = rows
    density = Grouped(INNER[name](), (0,), GROUPS)
    density, _, parameters = fitted(density, tile_of(values, (6, 3, 2), density), assignment)
    drawn = density.sample(parameters, np.ones(40_000, np.int64), np.random.default_rng(1)).astype(np.uint8)
    everything = np.array(list(itertools.product(range(1, 7), range(1, 4), range(1, 3))), np.uint8)
    p = np.exp(density.log_density(parameters, tile_of(everything, (6, 3, 2), density)))[:, 1]
    index = (drawn[:, 0] - 1) * 6 + (drawn[:, 1] - 1) * 2 + drawn[:, 2] - 1
    assert_allclose(np.bincount(index, minlength=36) / 40_000, p, atol=5 * 0.5 / np.sqrt(40_000))


@pytest.mark.parametrize("name", INNER)
def test_statistics_add_up_and_subtract(name, rows):
    values, assignment = rows
    density = Grouped(INNER[name](), (0,), GROUPS)
    factory = density.sufficient_statistics
    assert isinstance(factory, CountGrouped)
    halves = [np.arange(150), np.arange(150, 300)]
    parts = [factory.of(tile_of(values[half], (6, 3, 2), density), assignment.rows(half)) for half in halves]
    whole = factory.of(tile_of(values, (6, 3, 2), density), assignment)
    together = parts[0] + parts[1]
    assert_allclose(together.categories.table, whole.categories.table)
    assert_allclose(together.observed(), whole.observed())
    assert not (whole.would_go_negative(parts[0])).any()
    assert parts[0].would_go_negative(whole).any()
    assert_allclose((whole - parts[1]).categories.table, parts[0].categories.table, atol=1e-9)


def test_reindexing_equals_counting_other_codes(rows):
    """Without category 0 and 3 of the first column (the only one of its group), and with a new one in front."""
    values, assignment = rows
    density = Grouped(KDependence(1, BackOff(), ((), (0,), (1,))), (0,), GROUPS)
    kept = np.isin(values[:, 0], (0, 2, 3, 5, 6))
    tile = tile_of(values[kept], (6, 3, 2), density)
    sums = density.sufficient_statistics.of(tile, assignment.rows(kept))
    moves = [[-1, 1, 2, 4, 5], [0, 1, 2], [0, 1]]
    code = np.array([0, 0, 2, 3, 0, 4, 5], np.uint8)
    moved = np.column_stack([code[values[kept, 0]], values[kept, 1:]])
    again = density.reindexed(moves)
    assert again.groups.of_categories[0] == (0, 1, 0, 1, 0)
    counted = again.sufficient_statistics.of(tile_of(moved, (5, 3, 2), density), assignment.rows(kept))
    reindexed = sums.reindexed([0, 1], moves)
    assert reindexed.groups == counted.groups
    assert_allclose(reindexed.categories.table, counted.categories.table)
    assert_allclose(reindexed.coarse.cells, counted.coarse.cells)


def test_the_first_pass_chooses_groups_only_for_many_categories(rows):
    values, assignment = rows
    density = Grouped(KDependence(1, BackOff()), (0,))
    assert isinstance(density.sufficient_statistics, CountCategories)
    density, _, _ = fitted(density, tile_of(values, (6, 3, 2), density), assignment)
    assert density.groups == Groups(((), (), ()))


# Estimators -----------------------------------------------------------------------------------------------------


def table(n=900, k=150, seed=0):
    """A column of many categories whose class distribution has three levels, one that depends on it, and a number."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, k, n)
    y = rng.random(n) < np.array([0.1, 0.5, 0.9])[code % 3]
    few = np.where(rng.random(n) < 0.7, (code % 3 + y) % 3, rng.integers(0, 3, n))
    number = rng.normal(y + few, 1.0)
    many = pl.Series([None if rng.random() < 0.05 else f"v{c:03d}" for c in code.tolist()])
    return pl.DataFrame({"many": many, "few": [f"f{f}" for f in few], "number": number}), np.where(y, "yes", "no")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_group_many_categories(name):
    X, y = table()
    model = ESTIMATORS[name]().fit(X, y)
    groups = model.model_.blocks[0].density.groups
    assert 1 < groups.n_groups(0, 150) <= MOST_GROUPS
    assert groups.of_categories[1] == ()
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize("name", ESTIMATORS)
def test_few_categories_are_not_grouped(name):
    X, y = table(k=MANY_CATEGORIES)
    assert not isinstance(ESTIMATORS[name]().fit(X, y).model_.blocks[0].density, Grouped)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore:categories unseen")
def test_cross_validation_equals_refitting(name):
    X, y = table(500, 70)  # in some folds so few categories are left that they are not grouped
    result = po.cross_validate({"m": ESTIMATORS[name]()}, X, y, folds=4)
    refitted = cross_val_predict(ESTIMATORS[name](), X, y, cv=PredefinedSplit(result.fold), method="predict_proba")
    assert_allclose(result.posteriors["m"], refitted, atol=1e-10)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_files_keep_groups(name, tmp_path):
    X, y = table()
    model = ESTIMATORS[name]().fit(X, y)
    po.save(model, tmp_path / "m.posteriori")
    again = po.load(tmp_path / "m.posteriori")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.model_.blocks == model.model_.blocks
    again.partial_fit(X, y)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_partial_fit_keeps_the_groups_and_adds_new_categories(name):
    X, y = table()
    model = ESTIMATORS[name]().partial_fit(X, y, classes=["no", "yes"])
    before = dict(zip(model.model_.schema.columns[0].categories, groups_of(model), strict=True))
    model.partial_fit(X.with_columns(many=pl.lit("a new one")), y)
    after = dict(zip(model.model_.schema.columns[0].categories, groups_of(model), strict=True))
    assert after.pop("a new one") == np.bincount(list(before.values())).argmax()
    assert after == before
    assert model.class_count_.sum() == 2 * len(y)


def groups_of(model):
    return model.model_.blocks[0].density.groups.of_categories[0]


@pytest.mark.parametrize("name", ["tan", "kdb", "aode"])
def test_unlearning_undoes_partial_fit(name):
    X, y = table()
    model = ESTIMATORS[name](bins=[0.0, 1.0]).fit(X, y)
    expected = model.predict_proba(X)
    model.partial_fit(X[:100], y[:100])
    model.unlearn(X[:100], y[:100])
    assert_allclose(model.predict_proba(X), expected, atol=1e-9)


def test_merging_refuses_other_groups_and_merges_equal_ones():
    X, y = table()
    whole = po.AveragedOneDependence(bins=[0.0, 1.0]).fit(X, y)
    one, two = (
        po.AveragedOneDependence(bins=[0.0, 1.0]).fit(X[part], y[part]) for part in (slice(450), slice(450, 900))
    )
    with pytest.raises(ValueError, match="categories of column 'many' are in other groups in model 1"):
        po.merge([one, two])
    merged = po.merge([whole, whole])
    assert groups_of(merged) == groups_of(whole)
    assert merged.class_count_.sum() == 2 * len(y)


@pytest.mark.parametrize("name", ["tan", "kdb"])
def test_leave_one_out_equals_refits_with_these_groups(name):
    X, y = table(400, 70)
    model = ESTIMATORS[name](bins=[0.0, 1.0]).fit(X, y)
    from posteriori.learning.weights import left_out_factors

    rows = read_further_rows(model.fitted_, X, y, None, complete=False).source.with_schema(model.model_.schema)
    batches = []
    rows.reduce(lambda batch: batches.append(batch) or 0)
    (batch,) = batches
    factors = left_out_factors(model.model_, model.statistics_, batch)
    block, sums = model.model_.blocks[0], model.statistics_.blocks[0]
    density = block.density.with_fixed_structure(model.model_.parameters[0])
    chosen = np.flatnonzero((batch.codes.values > 0).all(axis=1))[:40]
    for i in chosen.tolist():
        row = np.array([i])
        tile = block.tile(batch.rows(row))
        rest = sums.without(tile, batch.assignment.rows(row))
        parameters = density.estimate(rest)
        expected = density.log_density(parameters, tile)[0]
        found = factors[i].sum(axis=1)
        assert_allclose(found - found[0], expected - expected[0], atol=1e-9)


def test_sql_of_groups_is_the_posterior():
    duckdb = pytest.importorskip("duckdb")
    X, y = table()
    model = po.TreeAugmentedNaiveBayes(bins=[0.0, 1.0]).fit(X, y)
    connection = duckdb.connect()
    connection.register("rows", X.to_arrow())
    found = connection.execute(model.to_sql("rows", "duckdb")).fetchnumpy()
    assert_allclose(found["p_yes"], model.predict_proba(X)[:, 1], atol=1e-9)


def test_a_network_has_tables_over_categories():
    X, y = table()
    X = X.select("many", "few")
    model = po.TreeAugmentedNaiveBayes().fit(X, y)
    network = model.to_network()
    assert_allclose(network.predict_proba(X, "class"), model.predict_proba(X), atol=1e-12)
    assert_allclose(network.log_likelihood(X), model.score_samples(X), rtol=1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_samples_and_explanations(name):
    X, y = table()
    model = ESTIMATORS[name]().fit(X, y)
    drawn, labels = model.sample(200, random_state=0)
    assert set(drawn["many"].drop_nulls() if hasattr(drawn, "columns") else []) <= set(X["many"].drop_nulls())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explained = model.explain(X[:5])
    assert explained is not None
    assert len(labels) == 200


def test_hidden_components_use_categories_themselves():
    X, y = table(400)
    model = po.TreeAugmentedNaiveBayes(em=po.EM(components_per_class=2, max_iter=3, n_init=1), bins=[0.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    assert not isinstance(model.model_.blocks[0].density, Grouped)


def test_em_over_missing_cells_with_groups():
    X, y = table(600)
    model = po.TreeAugmentedNaiveBayes(missing="em", bins=[0.0, 1.0]).fit(X, y)
    assert isinstance(model.model_.parameters[0], GroupedParameters)
    assert (np.diff(model.log_likelihood_trace_) > -1e-6).all()


def test_numbers_beside_groups():
    X, y = table()
    model = po.TreeAugmentedNaiveBayes(bins=None).fit(X, y)
    assert isinstance(model.model_.blocks[0].density, Grouped)
    assert model.score(X, y) > 0.7


def test_the_registry_allows_groups_in_files():
    assert densities.find_stored_class("Groups") is Groups


def test_a_network_refuses_tables_over_too_many_categories(monkeypatch):
    X, y = table()
    monkeypatch.setattr("posteriori.densities.grouped._MOST_TABLE_CELLS", 100)
    with pytest.raises(ValueError, match=r"a table of 1[45][0-9] categories would hold"):
        po.TreeAugmentedNaiveBayes().fit(X.select("many", "few"), y).to_network()
    with pytest.raises(ValueError, match="averaged one-dependence model is no network"):
        po.AveragedOneDependence().fit(X.select("many", "few"), y).to_network()


def test_damaged_groups_in_a_file_are_refused():
    with pytest.raises(ValueError, match="a group of categories has no category"):
        Groups(((0, 2),)).check()
    with pytest.raises(ValueError, match="groups of 2 categories, but 3"):
        Groups(((0, 1),)).check_against((3,))


def test_cost_does_not_follow_products_of_categories():
    """Two columns of 20,000 categories: tables over pairs of categories would need 800 million cells."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 20_000, (30_000, 2))
    X = pl.DataFrame({name: [f"v{c}" for c in code[:, j].tolist()] for j, name in enumerate("ab")})
    y = np.where(code[:, 0] % 2, "odd", "even")
    for estimator in (po.TreeAugmentedNaiveBayes(), po.AveragedOneDependence()):
        model = estimator.fit(X, y)
        assert model.model_.parameters[0].coarse.cardinalities[0] <= MOST_GROUPS


def test_categories_of_32_bit_codes_are_grouped_exactly():
    rng = np.random.default_rng(0)
    many = rng.permutation(np.tile(np.arange(66_000), 2))
    X = np.column_stack([many, rng.integers(0, 3, len(many))])
    y = (rng.random(len(many)) < 0.1 + 0.8 * (many % 4 == 0)).astype(int)
    model = po.TreeAugmentedNaiveBayes(columns=po.Columns(categorical_features=[0, 1])).fit(X, y)
    assert model.schema_.code_dtype == np.uint32
    groups = np.array(model.model_.blocks[0].density.groups.of_categories[0])
    assert groups.max() > 0
    of_groups = po.TreeAugmentedNaiveBayes(columns=po.Columns(categorical_features=[0, 1])).fit(
        np.column_stack([groups[many], X[:, 1]]), y
    )
    rows = slice(0, 2000)
    expected = of_groups.predict_proba(np.column_stack([groups[many[rows]], X[rows, 1]]))
    assert_allclose(model.predict_proba(X[rows]), expected, rtol=1e-12)
    drawn = model.sample(2000, random_state=0)[0][:, 0]
    assert drawn.max() > 65_535
    assert set(drawn.tolist()) <= set(range(66_000))
