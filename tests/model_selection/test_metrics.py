"""Metrics against scikit-learn, loops over rows, and the laws that weights obey."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from posteriori.model_selection import metrics
from posteriori.model_selection.metrics import area_under_curve


@pytest.fixture(params=[2, 3, 7])
def predictions(request):
    rng = np.random.default_rng(request.param)
    y_true = rng.integers(0, request.param, 200)
    posterior = rng.dirichlet(np.ones(request.param), 200)
    return y_true, posterior, rng.integers(0, 4, 200).astype(float)


SCORES = [metrics.accuracy, metrics.log_loss, metrics.brier_score]


def test_scores_equal_loops_over_the_rows(predictions):
    y_true, posterior, weight = predictions
    rows = list(zip(y_true, posterior, weight, strict=True))
    total = weight.sum()
    right = sum(w * (p.argmax() == c) for c, p, w in rows)
    lost = sum(-w * np.log(p[c]) for c, p, w in rows)
    squared = sum(w * ((p - np.eye(len(p))[c]) ** 2).sum() for c, p, w in rows)
    for score, expected in zip(SCORES, (right, lost, squared), strict=True):
        assert_allclose(score(y_true, posterior, weight), expected / total)


def test_scores_equal_scikit_learn(predictions):
    y_true, posterior, weight = predictions
    labels = range(posterior.shape[1])
    predicted = posterior.argmax(axis=1)
    assert metrics.accuracy(y_true, posterior) == sklearn.metrics.accuracy_score(y_true, predicted)
    assert_allclose(
        metrics.log_loss(y_true, posterior, weight),
        sklearn.metrics.log_loss(y_true, posterior, sample_weight=weight, labels=labels),
    )
    found = metrics.precision_recall(y_true, posterior, weight)
    for name, measure in (
        ("precision", sklearn.metrics.precision_score),
        ("recall", sklearn.metrics.recall_score),
        ("f1", sklearn.metrics.f1_score),
    ):
        options = {"sample_weight": weight, "zero_division": 0.0}
        expected = measure(y_true, predicted, labels=labels, average=None, **options)
        assert_allclose(getattr(found, name), expected)
        assert_allclose(found.macro[name], measure(y_true, predicted, average="macro", **options))


def test_binary_brier_score_is_twice_that_of_one_class():
    y_true, p = np.array([0, 1, 1, 0]), np.array([0.2, 0.9, 0.4, 0.6])
    posterior = np.column_stack([1 - p, p])
    expected = 2 * sklearn.metrics.brier_score_loss(y_true, p)
    assert_allclose(metrics.brier_score(y_true, posterior), expected)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 3), st.lists(st.integers(1, 50), min_size=3, max_size=3)),
        min_size=2,
        max_size=12,
    ).filter(lambda rows: any(weight for _, weight, _ in rows))
)
def test_weight_k_counts_as_k_rows(rows):
    y_true = np.array([row[0] for row in rows])
    weight = np.array([row[1] for row in rows])
    posterior = np.array([row[2] for row in rows], float)
    posterior /= posterior.sum(axis=1, keepdims=True)
    repeated = y_true.repeat(weight), posterior.repeat(weight, axis=0)
    for score in SCORES:
        assert_allclose(score(y_true, posterior, weight.astype(float)), score(*repeated), atol=1e-14)
    assert_allclose(metrics.confusion_matrix(y_true, posterior, weight), metrics.confusion_matrix(*repeated))
    one, other = metrics.calibration(y_true, posterior, weight), metrics.calibration(*repeated)
    for field in ("weight", "confidence", "accuracy", "expected_error"):
        assert_allclose(getattr(one, field), getattr(other, field), atol=1e-14)


def test_confusion_sums_to_support_and_its_diagonal_to_accuracy(predictions):
    y_true, posterior, _ = predictions
    confusion = metrics.confusion_matrix(y_true, posterior)
    per_class = metrics.precision_recall(y_true, posterior)
    assert_allclose(confusion.sum(axis=1), per_class.support)
    assert_allclose(np.trace(confusion) / len(y_true), metrics.accuracy(y_true, posterior))
    assert_allclose(np.diag(confusion) / confusion.sum(axis=1), per_class.recall)
    assert_allclose(np.diag(confusion) / confusion.sum(axis=0), per_class.precision)


def test_calibration_equals_a_loop_over_bins(predictions):
    y_true, posterior, weight = predictions
    found = metrics.calibration(y_true, posterior, weight, bins=5)
    sure, right = posterior.max(axis=1), posterior.argmax(axis=1) == y_true
    error = 0.0
    for b in range(5):
        inside = (sure > b / 5) & (sure <= (b + 1) / 5)
        assert_allclose(found.weight[b], weight[inside].sum())
        if found.weight[b]:
            assert_allclose(found.confidence[b], np.average(sure[inside], weights=weight[inside]))
            assert_allclose(found.accuracy[b], np.average(right[inside], weights=weight[inside]))
            gap = abs(found.accuracy[b] - found.confidence[b])
            error += gap * found.weight[b] / weight.sum()
    assert_allclose(found.expected_error, error)


def test_calibrated_predictions_have_no_calibration_error():
    posterior = np.array([[0.75, 0.25]] * 4)
    found = metrics.calibration(np.array([0, 0, 0, 1]), posterior)
    assert found.expected_error == 0.0
    assert found.weight.tolist() == [0, 0, 0, 0, 0, 0, 0, 4, 0, 0]


def test_calibration_takes_confidence_one_and_refuses_no_bins():
    posterior = np.array([[1.0 + 1e-16, 0.0], [1.0, 0.0]])
    assert metrics.calibration(np.array([0, 1]), posterior).weight[-1] == 2
    with pytest.raises(ValueError, match="at least one"):
        metrics.calibration(np.array([0, 1]), posterior, bins=0)


def test_one_class_is_predicted_without_loss():
    y_true, posterior = np.zeros(3, int), np.ones((3, 1))
    assert [score(y_true, posterior) for score in SCORES] == [1.0, 0.0, 0.0]
    assert metrics.confusion_matrix(y_true, posterior).tolist() == [[3]]


def test_a_class_without_rows_has_neither_recall_nor_precision():
    posterior = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]])
    found = metrics.precision_recall(np.array([0, 1]), posterior)
    assert np.isnan([found.precision[2], found.recall[2], found.f1[2]]).all()
    assert found.macro == {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert metrics.confusion_matrix(np.array([0, 1]), posterior).shape == (3, 3)
    assert np.isfinite(metrics.log_loss(np.array([0, 1]), posterior))


def test_a_class_that_is_never_predicted_counts_as_0():
    y_true, posterior = np.array([0, 1, 2]), np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.4, 0.6, 0.0]])
    found = metrics.precision_recall(y_true, posterior).macro
    for name, measure in (("precision", sklearn.metrics.precision_score), ("f1", sklearn.metrics.f1_score)):
        assert_allclose(found[name], measure(y_true, posterior.argmax(axis=1), average="macro", zero_division=0.0))


def test_an_impossible_truth_costs_36_nats():
    loss = metrics.log_loss(np.array([0]), np.array([[0.0, 1.0]]))
    assert_allclose(loss, -np.log(np.finfo(float).eps))


def test_undefined_rows_take_the_prior_and_others_stay():
    posterior = np.array([[0.3, 0.7], [np.nan, np.nan]])
    filled = metrics.fill_undefined(posterior, np.array([0.9, 0.1]))
    assert filled.tolist() == [[0.3, 0.7], [0.9, 0.1]]
    assert metrics.fill_undefined(posterior, np.array([[0.5, 0.5], [0.1, 0.9]])).tolist()[1] == [0.1, 0.9]


@given(st.integers(2, 4), st.integers(0, 2**32 - 1), st.booleans())
def test_area_under_curve_is_that_of_scikit_learn(n_classes, seed, weighted):
    rng = np.random.default_rng(seed)
    y_true = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 40)])
    coarse = np.round(rng.dirichlet(np.ones(n_classes), len(y_true)) * 4) + 0.01  # many ties
    posterior = coarse / coarse.sum(axis=1, keepdims=True)
    weight = rng.integers(0, 4, len(y_true)).astype(float) if weighted else np.ones(len(y_true))
    weight[:n_classes] = 1.0
    score = posterior[:, 1] if n_classes == 2 else posterior
    expected = sklearn.metrics.roc_auc_score(y_true, score, multi_class="ovr", average="weighted", sample_weight=weight)
    assert area_under_curve(y_true, posterior, weight) == pytest.approx(expected, abs=1e-12)


def test_area_under_curve_where_probabilities_round_to_1():
    log_odds = np.array([-50.0, -45.0, -40.0, -45.0, 2.0, -1.0])
    y_true = np.array([0, 1, 0, 0, 1, 1])
    posterior = np.stack([1 / (1 + np.exp(log_odds)), 1 / (1 + np.exp(-log_odds))], axis=1)
    assert (posterior[:4, 0] == 1.0).all()  # the first class cannot tell these rows apart, and the second can
    expected = sklearn.metrics.roc_auc_score(y_true, posterior[:, 1])
    assert area_under_curve(y_true, posterior) == pytest.approx(expected, abs=1e-15)
