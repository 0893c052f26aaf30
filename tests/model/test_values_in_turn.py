"""Rows with each of some values of a column in turn are predicted as if each were a row of its own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.model import Posterior, with_cells
from posteriori.model.marginals import depends_on_others
from posteriori.plotting.reading import posterior_of, read_batch

MODELS = {
    "pool": po.GenerativeClassifier,
    "naive Bayes": po.NaiveBayes,
    "gaps are evidence": lambda: po.NaiveBayes(missing="informative"),
    "tree": po.TreeAugmentedNaiveBayes,
    "one covariance": po.GaussianDiscriminant,
}


def fitted(name: str) -> tuple[Posterior, object]:
    penguins = load_penguins()
    model = MODELS[name]().fit(penguins, "species")
    return posterior_of(model), read_batch(model, penguins[::9])


@pytest.mark.parametrize("name", MODELS)
def test_values_in_turn_are_rows_of_their_own(name):
    posterior, rows = fitted(name)
    for column, (read, values) in enumerate(zip(posterior.schema.columns, values_of(posterior, rows), strict=True)):
        if read.is_ignored:
            continue
        found = posterior.log_posteriors_at(rows, column, values)
        expected = posterior.log_posterior(with_cells(rows, column, values))
        assert_allclose(found.reshape(expected.shape), expected, atol=1e-9, err_msg=read.name)


def test_trees_and_covariances_depend_on_other_cells():
    free, (tree, covariance) = fitted("naive Bayes")[0], (fitted(name)[0] for name in ("tree", "one covariance"))
    numbers = free.schema.of_kind("continuous")
    assert not any(depends_on_others(free.models[0], j) for j in numbers)
    assert all(depends_on_others(one.models[0], j) for one in (tree, covariance) for j in numbers)


def values_of(posterior, rows):
    for j, column in enumerate(posterior.schema.columns):
        if column.kind == "categorical":
            yield np.arange(1, len(column.categories) + 1)
        else:
            cells = rows.numbers.values[:, posterior.schema.of_kind("continuous").index(j)]
            yield np.nanquantile(cells, [0.0, 0.3, 0.7, 1.0])
