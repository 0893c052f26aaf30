"""Messages along forests of tables, against sums over all rows of a tiny table."""

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.joint.law import Law
from posteriori.model.beliefs import NoTablesError, Tables

SEEDS = st.integers(0, 2**32 - 1)
SIZES = (3, 2, 4, 3, 2)


def forest(seed, n_components=2, with_zeros=False):
    """A random forest of tables over five columns."""
    rng = np.random.default_rng(seed)
    parents = tuple(int(rng.integers(-1, j)) if j else -1 for j in range(len(SIZES)))
    tables = []
    for parent, size in zip(parents, SIZES, strict=True):
        shape = (n_components,) if parent < 0 else (n_components, SIZES[parent])
        table = rng.dirichlet(np.ones(size), size=shape)
        if with_zeros:
            table *= rng.random(table.shape) < 0.8
            table[..., 0] += 1e-3
            table /= table.sum(axis=-1, keepdims=True)
        tables.append(table)
    return Tables(np.log(rng.dirichlet(np.ones(n_components))), tuple(range(len(SIZES))), parents, tuple(tables))


def knowledge(seed, n=4):
    """Likelihoods of rows: soft ones, known cells and unknown cells."""
    rng = np.random.default_rng(seed + 1)
    found = []
    for size in SIZES:
        soft = rng.uniform(0.05, 1.0, (n, size))
        soft[0] = 1.0
        soft[1] = np.eye(size)[rng.integers(size)]
        found.append(soft)
    return found


def every_row(tables):
    """p(x) of each row, an array with an axis per column."""
    found = np.zeros(SIZES)
    for row in itertools.product(*map(range, SIZES)):
        for z, log_p in enumerate(tables.log_prior):
            p = np.exp(log_p)
            for j, (parent, table) in enumerate(zip(tables.parents, tables.tables, strict=True)):
                p *= table[z, row[j]] if parent < 0 else table[z, row[parent], row[j]]
            found[row] += p
    return found


def summed(law, likelihoods, i, left_out=None):
    """p(x) times the likelihoods of row i, but for one column."""
    product = law.copy()
    for j, one in enumerate(likelihoods):
        if j != left_out:
            product *= one[i].reshape([-1 if axis == j else 1 for axis in range(len(SIZES))])
    return product


@given(SEEDS, st.sampled_from([1, 3]), st.booleans())
@settings(max_examples=25)
def test_evidence_and_conditionals_are_sums_over_all_rows(seed, n_components, with_zeros):
    tables, known = forest(seed, n_components, with_zeros), knowledge(seed)
    law, beliefs = every_row(tables), tables.beliefs(known)
    others = beliefs.given_others()
    for i in range(len(known[0])):
        if summed(law, known, i).sum() == 0:
            continue  # impossible
        assert_allclose(np.exp(beliefs.log_evidence[i]), summed(law, known, i).sum(), rtol=1e-9)
        for j, (given_others, log_sum) in enumerate(others):
            axes = tuple(k for k in range(len(SIZES)) if k != j)
            wanted = summed(law, known, i, j).sum(axis=axes)
            assert_allclose(given_others[i], wanted / wanted.sum(), rtol=1e-9, atol=1e-12)
            assert_allclose(np.exp(log_sum[i]), wanted.sum(), rtol=1e-9)


@given(SEEDS)
@settings(max_examples=10)
def test_a_law_is_the_mixture_of_its_members(seed):
    members, known = (forest(seed), forest(seed + 7, 3)), knowledge(seed)
    weight = np.array([0.3, 0.7])
    mixed = Law(None, members, weight, {})
    total = sum(w * every_row(one) for w, one in zip(weight, members, strict=True))
    beliefs = mixed.believe(dict(enumerate(known)))
    for i in range(len(known[0])):
        assert_allclose(np.exp(beliefs.log_evidence[i]), summed(total, known, i).sum(), rtol=1e-9)
        for j, given_others in beliefs.given_others().items():
            axes = tuple(k for k in range(len(SIZES)) if k != j)
            wanted = summed(total, known, i, j).sum(axis=axes)
            assert_allclose(given_others[i], wanted / wanted.sum(), rtol=1e-9, atol=1e-12)


def test_drawn_rows_have_the_conditional_distribution():
    members, n = (forest(3), forest(4, 1)), 40_000
    mixed = Law(None, members, np.array([0.4, 0.6]), {})
    one = knowledge(3)
    known = {j: np.repeat(likelihood[2:3], n, axis=0) for j, likelihood in enumerate(one)}
    drawn = mixed.believe(known).draw(np.random.default_rng(0))
    total = 0.4 * every_row(members[0]) + 0.6 * every_row(members[1])
    wanted = summed(total, one, 2)
    found = np.zeros(SIZES)
    np.add.at(found, tuple(drawn[j] for j in range(len(SIZES))), 1.0 / n)
    assert np.abs(found - wanted / wanted.sum()).sum() < 0.05


@pytest.mark.parametrize("model", [po.TreeAugmentedNaiveBayes(), po.NaiveBayes(distributions="binned")])
def test_the_evidence_of_a_classifier_is_its_density_of_codes(model):
    rows = (
        load_penguins()
        .drop("species")
        .with_columns(body_mass_g=pl.when(pl.int_range(pl.len()) % 3 == 0).then(None).otherwise(pl.col("body_mass_g")))
    )
    model.fit(rows, load_penguins()["species"])
    tables = Tables.of(model.model_)

    def of_batch(batch):
        within = sum(
            block.density.log_density(parameters, block.tile(batch))[:, 0]
            for block, parameters in zip(model.model_.blocks, model.model_.parameters, strict=True)
            if block.shared
        )
        return tables.beliefs(tables.likelihoods(batch)).log_evidence + within

    assert_allclose(model._source(rows).map(of_batch), model.score_samples(rows), rtol=1e-9)


def test_a_model_without_tables_is_refused():
    model = po.GaussianDiscriminant().fit(load_penguins().drop("species"), load_penguins()["species"])
    with pytest.raises(NoTablesError, match="no tables"):
        Tables.of(model.model_)


def test_two_thousand_conflicting_children_do_not_underflow():
    n = 2000
    rare = [np.array([[[0.999, 0.001], [0.99, 0.01]]]), np.array([[[0.99, 0.01], [0.999, 0.001]]])]
    columns = tuple(range(n + 1))
    each = tuple(rare[i % 2] for i in range(n))
    tables = Tables(np.zeros(1), columns, (-1, *(0,) * n), (np.array([[0.3, 0.7]]), *each))
    found = tables.beliefs([np.ones((1, 2))] + [np.array([[0.0, 1.0]])] * n)
    assert_allclose(found.log_evidence, n / 2 * np.log(1e-5))
    assert_allclose(found.given_others()[0][0], [[0.3, 0.7]])
