"""Rankings agree with scikit-learn's curves, which are an independent implementation, and with counting by hand."""

import numpy as np
import pytest
import sklearn.metrics
from numpy.testing import assert_allclose

from posteriori.model_selection.ranking import Ranking


@pytest.fixture(scope="module")
def ranked():
    rng = np.random.default_rng(0)
    y_true, weight = rng.integers(0, 3, 300), rng.integers(1, 4, 300).astype(float)
    posterior = rng.dirichlet(np.ones(3), 300).round(2)  # with ties
    return y_true, posterior, weight


@pytest.mark.parametrize("label", [0, 1, 2])
def test_curves_are_those_of_scikit_learn(ranked, label):
    y_true, posterior, weight = ranked
    found = Ranking.of(y_true, posterior, label, weight)
    arguments = y_true == label, posterior[:, label]
    rates = sklearn.metrics.roc_curve(*arguments, sample_weight=weight, drop_intermediate=False)
    assert_allclose(found.false_positive_rate, rates[0])
    assert_allclose(found.recall, rates[1])
    assert_allclose(found.threshold, rates[2])
    precision, recall, _ = sklearn.metrics.precision_recall_curve(*arguments, sample_weight=weight)
    assert_allclose(found.precision[1:], precision[:-1][::-1])
    assert_allclose(found.recall[1:], recall[:-1][::-1])
    assert_allclose(found.area, sklearn.metrics.roc_auc_score(*arguments, sample_weight=weight))
    expected = sklearn.metrics.average_precision_score(*arguments, sample_weight=weight)
    assert_allclose(found.average_precision, expected)


def test_totals_at_a_threshold_are_those_of_the_rows_above_it(ranked):
    y_true, posterior, weight = ranked
    found = Ranking.of(y_true, posterior, 1, weight)
    for threshold in (0.0, 0.123, 0.25, 0.5, 1.0, 2.0):
        chosen, position = posterior[:, 1] >= threshold, found.at(threshold)
        assert_allclose(found.hits[position], weight[chosen & (y_true == 1)].sum())
        assert_allclose(found.selected[position], weight[chosen].sum() / weight.sum())
        expected = sklearn.metrics.f1_score(y_true == 1, chosen, sample_weight=weight)
        assert_allclose(found.f1[position], expected)
    assert_allclose(found.lift[-1], 1.0)


def test_a_class_without_rows_has_no_curve():
    found = Ranking.of(np.zeros(3, int), np.array([[0.5, 0.5]] * 3), 1)
    assert np.isnan(found.recall).all()
    assert np.isnan([found.area, found.average_precision]).all()
