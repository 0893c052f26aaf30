"""Out-of-fold predictions stay with a model, and each training row finds its own."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori.classifiers import kept_predictions as kept
from posteriori.classifiers.training_record import record_rows
from posteriori.datasets import load_penguins
from posteriori.exploring.document import sampled_rows
from posteriori.model_selection import held_out_predictions, out_of_fold
from posteriori.statistics import RowPosteriors

PENGUINS = load_penguins()
X = PENGUINS.drop("species")


def fitted(rows=PENGUINS, most=None):
    """Return naive Bayes with a record of its training rows, and its out-of-fold predictions."""
    model = po.NaiveBayes()
    held_out = out_of_fold(model, rows, "species", most=most)
    features = rows.drop("species")
    record_rows(model, features)
    kept.keep_predictions(model, held_out, lambda places: features[places])
    return model, held_out


def judged(model, rows):
    y_true = np.array([model.target_.lookup[label] - 1 for label in rows["species"]])
    return kept.judge_rows(model, rows.drop("species"), y_true)


@pytest.mark.parametrize("order", ["as they were", "reversed", "a part"])
def test_each_training_row_finds_its_own_prediction(order):
    model, held_out = fitted()
    places = {"as they were": np.arange(344), "reversed": np.arange(344)[::-1], "a part": np.arange(50, 344, 7)}[order]
    found = judged(model, PENGUINS[places])
    assert found.n_kept == len(places)
    assert found.seen == 0.0
    assert_allclose(found.held_out.posterior, held_out.posterior[places], atol=1e-3)
    assert_array_equal(found.held_out.prior, held_out.prior[places])
    assert found.held_out.rows_are == "held-out rows"


def test_the_scores_of_a_file_are_those_of_the_fit(tmp_path):
    model, held_out = fitted()
    po.save(model, tmp_path / "m.posteriori")
    found = judged(po.load(tmp_path / "m.posteriori"), PENGUINS.sample(fraction=1.0, shuffle=True, seed=1)).held_out
    assert found.log_loss == pytest.approx(held_out.log_loss, rel=1e-3)
    assert found.accuracy == pytest.approx(held_out.accuracy)
    assert_allclose(found.posterior.sum(axis=1), 1.0)


def test_other_rows_are_predicted_by_the_model():
    model, held_out = fitted(PENGUINS[::2])
    found = judged(model, PENGUINS)
    assert found.n_kept == 172
    assert "172 of the 344 rows are training rows" in found.held_out.how
    assert_allclose(found.held_out.posterior[::2], held_out.posterior, atol=1e-3)
    assert_allclose(found.held_out.posterior[1::2], model.predict_proba(X)[1::2], atol=1e-12)
    assert judged(model, PENGUINS[1::2]).n_kept == 0


def test_a_row_whose_label_was_changed_is_predicted_by_the_model():
    model, _ = fitted()
    wrong = PENGUINS.with_columns(species=pl.lit("Gentoo"))
    found = judged(model, wrong)
    assert found.n_kept == (PENGUINS["species"] == "Gentoo").sum()


def test_of_many_rows_a_subsample_is_kept_and_only_it_is_judged(monkeypatch):
    monkeypatch.setattr(held_out_predictions, "MOST_KEPT", 100)
    model, held_out = fitted()
    found = judged(model, PENGUINS)
    assert found.n_kept == len(found.held_out.y_true) == np.count_nonzero(found.judged) == 100
    assert_allclose(found.held_out.posterior, held_out.posterior[found.judged], atol=1e-3)
    page = sampled_rows(model, PENGUINS, None, 80)
    assert len(page["heldOut"]) == 80
    assert None not in page["heldOut"]


def test_a_fit_to_a_subsample_keeps_the_places_of_its_rows():
    model, held_out = fitted(most=60)
    found = judged(model, PENGUINS)
    assert_array_equal(np.flatnonzero(found.judged), held_out.place)
    assert_allclose(found.held_out.posterior, held_out.posterior, atol=1e-3)


def test_new_rows_equal_to_training_rows_use_the_model():
    rng = np.random.default_rng(0)
    rows = [
        pl.DataFrame({"a": rng.integers(0, 3, 500).astype(str), "species": rng.choice(["u", "v"], 500)})
        for _ in range(2)
    ]
    model, _ = fitted(rows[0])
    assert judged(model, rows[0]).n_kept == 500
    assert judged(model, rows[1]).n_kept == 0


def test_texts_tell_rows_apart():
    texts = ["red sea" + " very" * k + " blue sky" * (k % 3) for k in range(36)]
    rows = pl.DataFrame({"said": texts, "species": ["u", "v", "v"] * 12})
    model = po.NaiveBayes(columns=po.Columns(text=["said"]))
    held_out = out_of_fold(model, rows, "species")
    kept.keep_predictions(model, held_out, lambda places: rows.drop("species")[places])
    assert len(np.unique(model.fitted_.record.posteriors.hashes)) == 36
    found = judged(model, rows[::-1])
    assert found.n_kept == 36
    assert_allclose(found.held_out.posterior, held_out.posterior[::-1], atol=1e-3)


def test_a_model_that_changes_forgets_its_predictions():
    model, _ = fitted()
    model.partial_fit(PENGUINS[:20], "species")
    assert model.fitted_.record.posteriors is None
    pool = po.GenerativeClassifier(members=["nb"]).fit(PENGUINS, "species")
    kept.keep_predictions(pool, pool.out_of_fold_, lambda places: X[places])
    pool.partial_fit(PENGUINS[:20], "species")
    assert pool.fitted_.record.posteriors is None


def test_the_explorer_takes_predictions_of_a_file_in_any_order(tmp_path):
    model, held_out = fitted()
    po.save(model, tmp_path / "m.posteriori")
    loaded = po.load(tmp_path / "m.posteriori")
    moved = held_out.posterior * model.class_prior_ / held_out.prior
    moved /= moved.sum(axis=1, keepdims=True)
    assert_allclose(sampled_rows(loaded, PENGUINS[::-1], None, 2000)["heldOut"], moved[::-1], atol=1e-3)
    assert sampled_rows(loaded, X, None, 2000)["heldOut"] is None


def test_a_record_does_not_fit_together():
    good = {
        "hashes": np.array([1, 2], np.uint64),
        "log_posterior": np.log(np.full((2, 2), 0.5)).astype(np.float16),
        "component": np.array([1, 0], np.uint8),
        "fold": np.array([0, 1], np.uint8),
        "class_prior": np.full((2, 2), 0.5),
    }
    RowPosteriors(**good).check()
    for name, wrong, message in (
        ("hashes", np.array([2, 1], np.uint64), "not ascending"),
        ("hashes", np.array([1, 2]), "not 64 bits"),
        ("log_posterior", np.ones((2, 2), np.float16), "above 1"),
        ("log_posterior", np.zeros((2, 3), np.float16), "one number per row and class"),
        ("component", np.array([0, 2], np.uint8), "the classes of rows"),
        ("fold", np.array([0, 2], np.uint8), "no class prior"),
        ("fold", np.array([0, 1]), "one number per row"),
        ("class_prior", np.full((2, 2), 1.5), "class priors"),
    ):
        with pytest.raises(ValueError, match=message):
            RowPosteriors(**good | {name: wrong}).check()
