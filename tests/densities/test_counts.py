"""Laws of the densities of counts, on bags and on dense columns, and the oracles of each."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.special import gammaln
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB

import posteriori as po
from posteriori.densities import (
    Complement,
    Compound,
    LeaveOneOutDensity,
    Multinomial,
    PoissonRate,
    Presence,
    ScaledMultinomial,
    WordDensity,
    implements,
)
from posteriori.densities.compound import CompoundParameters
from posteriori.statistics.word_counts import LEVELS, total_of_bins
from posteriori.tables import Assignment, Bags, Numbers

Z, V, N = 3, 6, 40
RNG = np.random.default_rng(1)
COUNTS = RNG.negative_binomial(0.4, 0.3, (N, V)).astype(float)
COMPONENT = RNG.integers(0, Z, N).astype(np.int32)
WEIGHT = RNG.integers(1, 4, N).astype(float)
LABELS = Assignment(COMPONENT, WEIGHT, Z)
BAGS, DENSE = Bags.of_matrix(csr_array(COUNTS), slice(0, N)), Numbers(COUNTS)
DENSITIES = [
    Multinomial(),
    Multinomial(0.0),
    Complement(),
    Complement(0.5, norm=True),
    Presence(0.7),
    Compound(0.3),
    ScaledMultinomial(0.1),
    PoissonRate(),
    PoissonRate(smoothing=0.3),
]

every_density = pytest.mark.parametrize("density", DENSITIES, ids=repr)


def fitted(density, tile=BAGS, labels=LABELS):
    return density.estimate(density.sufficient_statistics.of(tile, labels))


@every_density
def test_bags_and_dense_columns_are_the_same_rows(density):
    of_bags, of_columns = fitted(density), fitted(density, DENSE)
    expected = density.log_density(of_bags, BAGS)
    assert expected.shape == (N, Z)
    assert_allclose(density.log_density(of_columns, DENSE), expected, rtol=1e-12)
    assert density.log_factors(of_bags, BAGS).shape == (N, Z, 1)
    assert density.log_factors(of_columns, DENSE).shape == (N, Z, V)
    for tile in (BAGS, DENSE):
        assert_allclose(density.log_factors(of_bags, tile).sum(axis=2), expected, rtol=1e-12)


@every_density
def test_the_log_density_is_the_sum_over_the_words_and_a_rest(density):
    assert implements(density, WordDensity)
    parameters = fitted(density)
    factors, rest = density.word_factors(parameters, BAGS)
    assert factors.shape == (len(BAGS.words), Z)
    assert_allclose(BAGS.sums_per_row(factors) + rest, density.log_density(parameters, BAGS), rtol=1e-12)


@every_density
def test_counts_as_integers_are_the_same(density):
    whole = replace(BAGS, counts=BAGS.counts.astype(np.int64))
    expected = density.log_density(fitted(density), BAGS)
    assert_allclose(density.log_density(fitted(density, whole), whole), expected, rtol=1e-12)


@every_density
def test_statistics_add_up_and_subtract(density):
    factory = density.sufficient_statistics
    halves = [factory.of(BAGS.rows(half), LABELS.rows(half)) for half in (slice(0, 15), slice(15, N))]
    whole = factory.of(BAGS, LABELS)
    expected = density.log_density(density.estimate(whole), BAGS)
    assert_allclose(density.log_density(density.estimate(halves[0] + halves[1]), BAGS), expected, rtol=1e-9)
    again = density.estimate(whole - halves[1] + halves[1])
    assert_allclose(density.log_density(again, BAGS), expected, rtol=1e-9)
    assert not whole.would_go_negative(halves[0]).any()
    assert halves[0].would_go_negative(whole).any()
    assert whole.would_go_negative(whole).shape == (Z, 1)
    assert factory.of(DENSE, LABELS).would_go_negative(whole).shape == (Z, V)


def scaled(counts):
    logs = np.log(1 + counts)
    return logs / np.maximum(np.linalg.norm(logs, axis=1, keepdims=True), 1e-300)


def test_scaled_counts_are_those_of_scikit_learn():
    X = csr_array(scaled(COUNTS))
    theirs = MultinomialNB(alpha=0.1).fit(X, COMPONENT, WEIGHT)
    model = po.NaiveBayes(distributions=ScaledMultinomial(0.1)).fit(csr_array(COUNTS), COMPONENT, WEIGHT)
    assert_allclose(model.predict_proba(csr_array(COUNTS)), theirs.predict_proba(X), rtol=1e-8)
    with pytest.raises(ValueError, match="the scaled scores of column 'counts' are not a density"):
        model.score_samples(csr_array(COUNTS))
    with pytest.raises(ValueError, match="no rows can be drawn"):
        model.sample()


@every_density
def test_words_and_components_can_be_moved(density):
    statistics = density.sufficient_statistics.of(BAGS, LABELS)
    moved = statistics.reindexed([2, -1, 0], [[5, -1, 0, 1, 2, 3, 4]])
    places = np.array([2, 3, 4, 5, 6, 0])
    other = replace(BAGS, words=places[BAGS.words].astype(np.int32), n_words=V + 1)
    kept = np.flatnonzero(COMPONENT != 1)
    labels = Assignment(np.where(COMPONENT == 0, 2, 0)[kept].astype(np.int32), WEIGHT[kept], Z)
    expected = density.sufficient_statistics.of(other.rows(kept), labels)
    for name in ("count", "at_least", "totals"):
        if hasattr(moved, name):
            assert_allclose(getattr(moved, name), getattr(expected, name))
    assert_allclose(moved.weight, expected.weight)


@every_density
def test_leave_one_out_is_refitting(density):
    assert implements(density, LeaveOneOutDensity)
    statistics = density.sufficient_statistics.of(BAGS, LABELS)
    for tile in (BAGS, DENSE):
        left = density.left_out(density.estimate(statistics), statistics, tile, LABELS)
        for i in (0, 3, 22):
            others = np.arange(N) != i
            refitted = fitted(density, BAGS.rows(others), LABELS.rows(others))
            expected = density.log_factors(refitted, tile.rows(np.array([i])))[0]
            if np.isnan(left).any():  # it has no closed form
                without = statistics.without(BAGS.rows(np.array([i])), LABELS.rows(np.array([i])))
                left[i] = density.log_factors(density.estimate(without), tile.rows(np.array([i])))[0]
            assert_allclose(left[i], expected, rtol=1e-8, atol=1e-12)


@every_density
def test_a_missing_count_is_the_row_without_the_word(density):
    """For dense columns: the other words are distributed as they are in a table without the column."""
    parameters = fitted(density)
    values = COUNTS.copy()
    values[:, 2] = np.nan
    kept = [0, 1, 3, 4, 5]
    factors = density.log_factors(parameters, Numbers(values))
    assert_array_equal(factors[:, :, 2], 0.0)
    if isinstance(density, Multinomial | ScaledMultinomial):
        counts = COUNTS[:, kept]
        if isinstance(density, ScaledMultinomial):
            counts = scaled(counts)
        with np.errstate(invalid="ignore"):
            log_share = np.log(np.exp(parameters.log_probability[:, kept]))
            log_share -= np.log(np.exp(log_share).sum(axis=1, keepdims=True))
            expected = np.where(counts[:, None] > 0, counts[:, None] * log_share, 0).sum(axis=2)
    elif isinstance(density, PoissonRate):
        smaller = replace(parameters, rate=parameters.rate[:, kept])
        expected = density.log_density(smaller, Numbers(COUNTS[:, kept]))
    elif isinstance(density, Compound):
        smaller = replace(parameters, concentration=parameters.concentration[:, kept])
        expected = density.log_density(smaller, Numbers(COUNTS[:, kept]))
    elif isinstance(density, Presence):
        smaller = replace(parameters, present=parameters.present[:, kept], absent=parameters.absent[:, kept])
        expected = density.log_density(smaller, Numbers(COUNTS[:, kept]))
    else:
        expected = density.log_density(replace(parameters, score=parameters.score[:, kept]), Numbers(COUNTS[:, kept]))
    assert_allclose(factors.sum(axis=2), expected, rtol=1e-10)
    assert_allclose(density.log_density(parameters, Numbers(values)), expected, rtol=1e-10)


@every_density
def test_what_is_no_count_is_out_of_support(density):
    cells = np.array([[0.0, 1.0, -1.0], [np.inf, 2.0, np.nan], [0.5, 3.0, 1.0]])
    fraction = isinstance(density, Compound | PoissonRate)
    expected = np.array([[0, 0, 1], [1, 0, 0], [fraction, 0, 0]], bool)
    assert_array_equal(density.out_of_support(Numbers(cells)), expected)
    bags = Bags.of_matrix(csr_array(cells), slice(0, 3))
    assert_array_equal(density.out_of_support(bags), expected.any(axis=1, keepdims=True))


@pytest.mark.parametrize("density", [Multinomial(), Presence(), Compound()], ids=repr)
def test_rows_of_a_given_length_have_a_total_probability_of_1(density):
    """Over all sequences of n words, or over all sets of words: the number of orders is what log p leaves out."""
    parameters = fitted(density)
    if isinstance(density, Presence):
        rows = np.array(list(itertools.product([0.0, 1.0], repeat=V)))
        orders = 0.0
    else:
        rows = np.array([row for row in itertools.product(range(4), repeat=V) if sum(row) == 3], float)
        orders = gammaln(4) - gammaln(rows + 1).sum(axis=1)[:, np.newaxis]
    assert_allclose(np.exp(density.log_density(parameters, Numbers(rows)) + orders).sum(axis=0), 1.0)


@pytest.mark.parametrize("density", [Multinomial(), Presence(), Compound()], ids=repr)
def test_estimates_from_drawn_rows_are_the_parameters(density):
    parameters = fitted(density)
    if not isinstance(density, Presence):
        parameters = replace(parameters, mean_total=12.0)
    component = np.repeat(np.arange(Z, dtype=np.int32), 6_000)
    drawn = density.sample(parameters, component, np.random.default_rng(0))
    again = fitted(density, drawn, Assignment(component, np.ones(len(component)), Z))
    name = {"multinomial": "log_probability", "presence": "present", "compound": "concentration"}[density.name]
    truth = getattr(parameters, name)
    assert_allclose(getattr(again, name), truth, rtol=0.1, atol=0.03 * np.abs(truth).max())


def test_multinomial_is_scipys_and_compound_is_scipys():
    totals = COUNTS.sum(axis=1).astype(int)
    orders = gammaln(totals + 1) - gammaln(COUNTS + 1).sum(axis=1)
    shares = fitted(Multinomial())
    concentrations = fitted(Compound())
    for z in range(Z):
        expected = scipy.stats.multinomial(totals, np.exp(shares.log_probability[z])).logpmf(COUNTS) - orders
        assert_allclose(Multinomial().log_density(shares, BAGS)[:, z], expected, rtol=1e-8, atol=1e-9)
        law = scipy.stats.dirichlet_multinomial(concentrations.concentration[z], totals)
        assert_allclose(
            Compound().log_density(concentrations, BAGS)[:, z], law.logpmf(COUNTS.astype(int)) - orders, atol=1e-8
        )


def test_compound_with_missing_counts_is_scipys_of_the_others():
    parameters = fitted(Compound())
    holes = COUNTS.copy()
    holes[:, 1] = np.nan
    others = [j for j in range(COUNTS.shape[1]) if j != 1]
    known = COUNTS[:, others].astype(int)
    orders = gammaln(known.sum(axis=1) + 1) - gammaln(known + 1).sum(axis=1)
    for z in range(Z):
        law = scipy.stats.dirichlet_multinomial(parameters.concentration[z, others], known.sum(axis=1))
        found = Compound().log_density(parameters, Numbers(holes))[:, z]
        assert_allclose(found, law.logpmf(known) - orders, atol=1e-8)


def test_compound_of_two_words_is_scipys_and_follows_polyas_urn():
    a = np.array([[0.3, 1.7], [2.0, 0.5]])
    parameters = CompoundParameters(a, 4.0)
    rows = np.array([[k, n - k] for n in range(1, 6) for k in range(n + 1)], dtype=float)
    n = rows.sum(axis=1)
    orders = gammaln(n + 1) - gammaln(rows + 1).sum(axis=1)
    found = Compound().log_density(parameters, Numbers(rows))
    one_more = Compound().log_density(parameters, Numbers(rows + np.array([1.0, 0.0])))
    for z in range(2):
        assert_allclose(found[:, z], scipy.stats.betabinom(n, *a[z]).logpmf(rows[:, 0]) - orders, atol=1e-10)
        assert_allclose(np.exp(one_more - found)[:, z], (a[z, 0] + rows[:, 0]) / (a[z].sum() + n), rtol=1e-10)


def test_scikit_learn_agrees():
    X = csr_array(COUNTS)
    for density, theirs in (
        (Multinomial(0.5), MultinomialNB(alpha=0.5)),
        (Presence(0.5), BernoulliNB(alpha=0.5)),
    ):
        theirs.fit(X, COMPONENT, WEIGHT)
        model = po.NaiveBayes(distributions=density).fit(X, COMPONENT, WEIGHT)
        assert_allclose(model.predict_proba(X), theirs.predict_proba(X), rtol=1e-8)
    for norm in (False, True):
        theirs = ComplementNB(alpha=0.5, norm=norm).fit(X, COMPONENT, WEIGHT)
        model = po.NaiveBayes(distributions=Complement(0.5, norm), priors=[1 / 3] * 3).fit(X, COMPONENT, WEIGHT)
        assert_allclose(model.predict_proba(X), theirs.predict_proba(X), rtol=1e-8)


def test_compound_maximises_the_likelihood():
    density = Compound(1e-9)
    counts = np.minimum(COUNTS, LEVELS)
    tile, labels = Numbers(counts), Assignment(np.zeros(N, np.int32), WEIGHT, 1)
    fit = fitted(density, tile, labels)

    def loss(log_a):
        return -WEIGHT @ density.log_density(replace(fit, concentration=np.exp(log_a)[np.newaxis]), tile)[:, 0]

    best = scipy.optimize.minimize(loss, np.zeros(V), tol=1e-10)
    assert loss(np.log(fit.concentration[0])) <= best.fun + 1e-4


def test_totals_are_rounded_by_one_percent():
    from posteriori.statistics.word_counts import _bin_of

    totals = np.arange(1, 200_000)
    stands = total_of_bins()[_bin_of(totals)]
    assert_array_equal(stands[:64], totals[:64])
    assert (np.abs(stands / totals - 1) < 0.02).all()


def test_a_repeated_word_counts_less_under_compound():
    X = csr_array(np.concatenate([COUNTS, [[0, 0, 0, 0, 0, 9]]]))
    y = np.append(COMPONENT, 0)
    one, many = csr_array([[0, 0, 0, 0, 0, 1]]), csr_array([[0, 0, 0, 0, 0, 9]])

    def odds(name, row):
        log_proba = po.NaiveBayes(distributions=name).fit(X, y).predict_log_proba(row)[0]
        return log_proba[0] - log_proba[1]

    gain = {name: odds(name, many) - odds(name, one) for name in ("multinomial", "compound")}
    assert 0 < gain["compound"] < gain["multinomial"]


def test_complement_is_no_density():
    model = po.NaiveBayes(distributions="complement").fit(csr_array(COUNTS), COMPONENT)
    with pytest.raises(ValueError, match="the complement scores of column 'counts' are not a density"):
        model.score_samples(csr_array(COUNTS))
    with pytest.raises(ValueError, match="not a density, so that no rows can be drawn"):
        model.sample(2)


@pytest.mark.parametrize("name", ["presence", "compound"])
def test_a_pseudo_count_is_needed(name):
    with pytest.raises(ValueError, match="a pseudo-count above 0"):
        po.NaiveBayes(distributions=name, alpha=0.0).fit(csr_array(COUNTS), COMPONENT)


def test_shares_of_the_smallest_pseudo_count_are_positive():
    assert np.isfinite(
        po.NaiveBayes(distributions="presence", alpha=5e-324).fit(COUNTS, COMPONENT).score_samples(COUNTS)
    ).all()


def test_em_of_rows_without_label_increases_the_likelihood():
    y = COMPONENT.astype(object)
    y[::3] = None
    for X in (csr_array(COUNTS), COUNTS):
        model = po.NaiveBayes(distributions="multinomial", labels=po.Labels(unlabelled="learn")).fit(X, y)
        assert (np.diff(model.log_likelihood_trace_) > -1e-8).all()
        assert len(model.log_likelihood_trace_) > 2


@pytest.mark.parametrize("name", ["multinomial", "scaled", "complement", "compound", "presence", "poisson_rate"])
def test_a_negative_count_is_an_error_that_names_the_word(name):
    X = csr_array(np.where(COUNTS > 0, COUNTS, 0))
    X.data[3] = -2
    row, word = np.searchsorted(X.indptr, 3, side="right") - 1, X.indices[3]
    for target in ("fit", "partial_fit"):
        with pytest.raises(
            ValueError, match=rf"column 'counts' holds -2 for word 'x{word}' in row {row}.*alternate_sign"
        ):
            getattr(po.NaiveBayes(distributions=name), target)(X, COMPONENT)
