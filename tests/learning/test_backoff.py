"""Learned back-off: against refits without each row, a numeric gradient, and in everything that a classifier does."""

import functools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime

import posteriori as po
from posteriori.densities import BackOff, KDependence, coarse_parameters
from posteriori.densities.conditional import Family, LeftOutCells
from posteriori.learning.backoff import FARTHEST, MODE, _at_maximum, smoothing_in
from posteriori.statistics.counts import CountTogether
from posteriori.tables.batch import Assignment, Codes

MODELS = (po.TreeAugmentedNaiveBayes, po.classifiers.ChowLiuClassifier, po.KDependenceBayes, po.AveragedOneDependence)


def table(n, dependent, seed=0, gaps=0.0):
    """Return two columns of categories whose dependence carries all or none of the information about the class."""
    rng = np.random.default_rng(seed)
    a, noise = rng.integers(0, 3, n), rng.random(n) < 0.1
    y = rng.integers(0, 2, n)
    b = np.where(noise, rng.integers(0, 3, n), (a + y) % 3) if dependent else np.where(noise, 2, y)
    cells = np.column_stack([a, b]).astype(str).astype(object)
    cells[rng.random(cells.shape) < gaps] = None
    return pl.DataFrame(cells, schema=["a", "b"], orient="row"), y


def table_of_clear_order(n, gaps):
    """Return dependent columns of which b is more relevant to the class than a, also without a row."""
    X, y = table(n, dependent=True, gaps=gaps)
    a, b = (X[name].to_numpy() for name in X.columns)
    b = np.where(np.arange(n) % 3 == 0, y.astype(str), b)
    return pl.DataFrame({"a": a.astype(object), "b": b.astype(object)}), y


def smoothing_of(model):
    return smoothing_in(model.model_.blocks)


def codes_of(seed, n=40, d=3, k=3, gaps=0.15):
    rng = np.random.default_rng(seed)
    codes = rng.integers(1, k + 1, (n, d)) * (rng.random((n, d)) >= gaps)
    return codes.astype(np.uint32), rng.integers(0, 2, n)


PARENTS = ((), (0,), (0, 1))


def cells_of(codes, component, weight, parents=PARENTS, alpha=1.0):
    """Return the cells of families, and their density and counts."""
    cardinalities = (3,) * codes.shape[1]
    scopes = tuple((*of_j, j) for j, of_j in enumerate(parents))
    counts = CountTogether(scopes).of(Codes(codes, cardinalities), Assignment(component, weight, 2))
    families = [Family(j, counts.table(scope), range(2)) for j, scope in enumerate(scopes)]
    return LeftOutCells.of(families, alpha, len(parents), 2), counts


def left_out_by_refits(codes, component, pseudo_rows, alpha=1.0):
    """Return Σ log p(x_j | parents, y) of each row under the tables of the other rows."""
    total, smoothing = 0.0, BackOff(1.0, alpha, tuple(map(tuple, pseudo_rows.tolist())))
    density = KDependence(2, smoothing, PARENTS)
    for i in range(len(codes)):
        rest = np.arange(len(codes)) != i
        seen = np.array([(codes[rest, j] == codes[i, j]).any() for j in range(codes.shape[1])])
        _, counts = cells_of(codes[rest], component[rest], np.ones(rest.sum()))
        tables = density.estimate(counts).tables
        for j, of_j in enumerate(PARENTS):
            if codes[i, j] > 0 and seen[j]:
                total += tables.table(j)[(component[i], *codes[i, list(of_j)], codes[i, j])]
    return total


@pytest.mark.parametrize("seed", range(3))
def test_the_likelihood_of_cells_is_that_of_refits_without_a_row(seed):
    codes, component = codes_of(seed)
    pseudo_rows = np.random.default_rng(seed).gamma(2.0, 5.0, (3, 3))
    found = cells_of(codes, component, np.ones(len(codes)))[0].sweep(pseudo_rows)[0]
    assert_allclose(found, left_out_by_refits(codes, component, pseudo_rows), rtol=1e-10)


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3, 2.0]))
def test_the_sums_of_a_step_are_the_gradient(seed, alpha):
    codes, component = codes_of(seed)
    cells = cells_of(codes, component, np.random.default_rng(seed).integers(1, 4, len(codes)) / 2.0, alpha=alpha)[0]
    pseudo_rows = np.random.default_rng(seed).gamma(2.0, 5.0, (3, 3))
    _, by_prior, exposure = cells.sweep(pseudo_rows)
    numeric = approx_fprime(
        np.log(pseudo_rows).ravel(), lambda logs: cells.sweep(np.exp(logs).reshape(3, 3))[0], 1e-6
    ).reshape(3, 3)
    assert_allclose(by_prior - pseudo_rows * exposure, numeric, atol=1e-3)


@given(st.integers(0, 10_000))
def test_learned_pseudo_rows_are_a_maximum_and_ignore_names(seed):
    codes, component = codes_of(seed)
    cells = cells_of(codes, component, np.ones(len(codes)))[0]
    learned = cells.learned_pseudo_rows(MODE)

    def score(pseudo_rows):
        return cells.sweep(pseudo_rows)[0] + (np.log(pseudo_rows) - pseudo_rows / MODE).sum()

    for j, t in np.ndindex(3, 3):
        for factor in (0.7, 1.4):
            moved = learned.copy()
            moved[j, t] *= factor
            assert score(moved) < score(learned)
    assert_allclose(learned[0, 1:], MODE)  # a level without cells keeps the mode of the prior
    renamed = np.array([0, 3, 1, 2])[codes].astype(np.uint32)
    other = cells_of(renamed, 1 - component, np.ones(len(codes)))[0]
    assert_allclose(other.learned_pseudo_rows(MODE), learned, rtol=1e-6)


@given(st.integers(0, 10_000))
def test_a_whole_weight_is_a_repetition(seed):
    codes, component = codes_of(seed)
    weight = np.random.default_rng(seed).integers(1, 4, len(codes))
    one = cells_of(codes, component, weight.astype(np.float64))[0]
    other = cells_of(np.repeat(codes, weight, axis=0), np.repeat(component, weight), np.ones(weight.sum()))[0]
    assert_allclose(one.learned_pseudo_rows(MODE), other.learned_pseudo_rows(MODE), rtol=1e-9)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("gaps", [0.0, 0.4])
def test_the_multiplier_maximises_left_out_posteriors_of_classes(make, gaps):
    X, y = table_of_clear_order(36 if gaps else 16, gaps)
    smoothing = smoothing_of(make(backoff="learned").fit(X, y))
    own = smoothing.scaled(1.0 / multiplier_of(smoothing, make, X, y))

    def score(multiplier):
        total = 0.0
        for i in range(len(y)):
            rest = np.arange(len(y)) != i
            model = make(backoff=own.scaled(multiplier)).fit(X.filter(pl.Series(rest)), y[rest])
            total += np.log(model.predict_proba(X[i : i + 1])[0, y[i]])
        return total + np.log(multiplier) - multiplier

    expected = 2.0 ** _at_maximum(functools.cache(lambda power: score(2.0**power)))
    assert_allclose(smoothing.of_columns[0][0] / own.of_columns[0][0], expected, rtol=1e-6)


def test_the_multiplier_is_the_vertex_of_any_parabola():
    for vertex in (-9.2, -2.4, 0.3, 2.0, 4.1, 11.6):
        assert_allclose(_at_maximum(lambda power, at=vertex: -((power - at) ** 2)), vertex, atol=1e-12)
    assert abs(_at_maximum(lambda power: power)) <= FARTHEST + 1


def multiplier_of(smoothing, make, X, y):
    """Return the multiplier in learned pseudo-rows, from those of the cells alone."""
    model = make(backoff=10.0).fit(X, y)
    density, statistics = model.model_.blocks[0].density, model.statistics_.blocks[0]
    families = density.counted_families(coarse_parameters(model.model_.parameters[0]), statistics)
    own = LeftOutCells.of(families, 1.0, 2, density.most_parents).learned_pseudo_rows(MODE)
    ratio = np.array(smoothing.of_columns) / own
    assert_allclose(ratio, ratio[0, 0], rtol=1e-9)
    return ratio[0, 0]


def test_dependence_that_matters_is_shrunk_less():
    for gaps in (0.0, 0.3):
        strengths = [
            po.KDependenceBayes(k=1, backoff="learned").fit(*table(300, one, gaps=gaps)) for one in (True, False)
        ]
        child = [max(strength.parents_, key=lambda name: len(strength.parents_[name])) for strength in strengths]
        with_parent = [one.backoff_[name][1] for one, name in zip(strengths, child, strict=True)]
        assert with_parent[0] < 0.5 * with_parent[1]


@pytest.mark.parametrize("make", MODELS)
def test_learned_pseudo_rows_are_those_of_the_tables(make, tmp_path):
    X, y = table(200, dependent=True)
    learned = make(backoff="learned").fit(X, y)
    given_back = make(backoff=smoothing_of(learned)).fit(X, y)
    assert_allclose(learned.predict_proba(X), given_back.predict_proba(X), rtol=1e-12)
    assert given_back.backoff_ == learned.backoff_
    assert list(learned.backoff_) == ["a", "b"]
    for model in (learned, given_back):
        po.save(model, tmp_path / "model")
        again = po.load(tmp_path / "model")
        assert (again.backoff, again.backoff_) == (model.backoff, model.backoff_)
        assert_allclose(again.predict_proba(X), learned.predict_proba(X), rtol=1e-12)
    if make is not po.AveragedOneDependence:
        losses = [po.model_selection.leave_one_out(one, X, y).log_loss for one in (learned, given_back)]
        assert_allclose(*losses)
    assert make(backoff=None).fit(X, y).backoff_ is None


@pytest.mark.parametrize("make", MODELS[:3])
def test_leave_one_out_with_learned_pseudo_rows_equals_refits(make):
    X, y = table_of_clear_order(60, 0.1)
    learned = make(backoff="learned").fit(X, y)
    found = po.model_selection.leave_one_out(learned, X, y).posterior
    for i in range(0, 60, 7):
        rest = np.arange(60) != i
        refitted = make(backoff=smoothing_of(learned)).fit(X.filter(pl.Series(rest)), y[rest])
        assert_allclose(found[i], refitted.predict_proba(X[i : i + 1])[0], rtol=1e-6)


@pytest.mark.parametrize("make", MODELS)
def test_whole_weights_give_what_repeated_rows_give(make):
    X, y = table(60, dependent=True)
    weight = np.random.default_rng(0).integers(0, 4, 60)
    weighted = make(backoff="learned").fit(X, y, sample_weight=weight.astype(np.float64))
    rows = np.repeat(np.arange(60), weight)
    repeated = make(backoff="learned").fit(X[rows], y[rows])
    assert_allclose(list(weighted.backoff_.values()), list(repeated.backoff_.values()), rtol=1e-9)
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-9)


def test_columns_with_groups_of_categories_have_pseudo_rows_too():
    rng = np.random.default_rng(0)
    X = pl.DataFrame({"many": rng.integers(0, 60, 600).astype(str), "few": rng.integers(0, 3, 600).astype(str)})
    y = (X["many"].cast(pl.Int64).to_numpy() % 2 + rng.integers(0, 2, 600)) // 2
    for make in MODELS:
        learned = make(backoff="learned").fit(X, y)
        assert set(learned.backoff_) == {"many", "few"}
        assert np.isfinite(learned.predict_proba(X)).all()


@pytest.mark.parametrize("make", [po.TreeAugmentedNaiveBayes, po.AveragedOneDependence])
def test_cross_validation_learns_pseudo_rows_without_the_fold(make):
    X, y = table(150, dependent=True)
    found = po.cross_validate({"one": make(backoff="learned")}, X, y, folds=3)
    for k in range(3):
        inside = found.fold == k
        rest = make(backoff="learned").fit(X.filter(pl.Series(~inside)), y[~inside])
        assert_allclose(found.posteriors["one"][inside], rest.predict_proba(X.filter(pl.Series(inside))), rtol=1e-9)


def test_factor_weights_are_learned_after_the_pseudo_rows():
    X, y = table(200, dependent=True)
    both = po.KDependenceBayes(backoff="learned", feature_weights="conditional").fit(X, y)
    smoothing = smoothing_of(po.KDependenceBayes(backoff="learned").fit(X, y))
    given_back = po.KDependenceBayes(backoff=smoothing, feature_weights="conditional").fit(X, y)
    assert_allclose(both.predict_proba(X), given_back.predict_proba(X), rtol=1e-9)


def test_what_sees_only_sums_refuses_to_learn():
    X, y = table(80, dependent=True)
    model = po.TreeAugmentedNaiveBayes(backoff="learned")
    with pytest.raises(ValueError, match=r'backoff="learned" takes all rows at once, and partial_fit'):
        model.partial_fit(X, y)
    model.fit(X, y)
    with pytest.raises(ValueError, match=r'backoff="learned" takes all rows at once'):
        model.unlearn(X[:2], y[:2])
    with pytest.raises(ValueError, match=r'backoff="learned" takes all rows at once'):
        po.merge([model, model])
    with pytest.raises(ValueError, match="defined for counts only; give bins"):
        po.TreeAugmentedNaiveBayes(backoff="learned", bins=None).fit(X, y)
    with pytest.raises(ValueError, match="components_per_class"):
        po.TreeAugmentedNaiveBayes(backoff="learned", em=po.EM(components_per_class=2)).fit(X, y)
    with pytest.raises(ValueError, match="without label"):
        po.TreeAugmentedNaiveBayes(backoff="learned", labels=po.Labels(unlabelled=-1)).fit(
            X, np.where(np.arange(80) < 40, y, -1)
        )


def test_pools_keep_pseudo_rows_in_updates_and_average_in_merges(tmp_path):
    members = {
        "tan": po.TreeAugmentedNaiveBayes(backoff="learned"),
        "aode": po.AveragedOneDependence(backoff="learned"),
    }
    first, second = (po.GenerativeClassifier(members).fit(*table(200, True, seed)) for seed in (0, 1))
    merged = po.merge([first, second])
    for name in members:
        learned = [np.array(list(pool.members_[name].backoff_.values())) for pool in (first, second)]
        assert (learned[0] != learned[1]).any()
        assert_allclose(list(merged.members_[name].backoff_.values()), np.sqrt(learned[0] * learned[1]))
    before = {name: first.members_[name].backoff_ for name in members}
    first.partial_fit(*table(50, True, 2))
    assert {name: first.members_[name].backoff_ for name in members} == before
    first.unlearn(*table(50, True, 2))
    assert {name: first.members_[name].backoff_ for name in members} == before
    assert first.members_["tan"].class_count_.sum() == 200
    X = table(20, True)[0]
    po.save(first, tmp_path / "pool")
    assert_allclose(po.load(tmp_path / "pool").predict_proba(X), first.predict_proba(X), rtol=1e-12)
