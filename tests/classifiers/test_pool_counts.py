"""The pool on columns of counts, alone and beside other columns."""

import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array, vstack

import posteriori as po
from posteriori.registry import MODELS, pool_candidates
from posteriori.scoring.strangeness import Strangeness

N, V, C = 160, 25, 3
OF_COUNTS = ["nb", *(name for name, spec in MODELS.items() if spec.of_counts)]


def drawn(n=N, classes=C, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    shares = np.random.default_rng(9).dirichlet(np.full(V, 0.5), classes)
    counts = csr_array(np.stack([rng.multinomial(rng.poisson(4), shares[c]) for c in y]))
    frame = pl.DataFrame({"age": rng.normal(y, 1.5), "sky": np.array(["red", "blue", "gray"])[rng.integers(0, 3, n)]})
    return po.tables.Blocks(frame, {"words": counts}, {"words": [f"w{j}" for j in range(V)]}), y


ROWS, Y = drawn()
WORDS = ROWS.counts["words"]


@pytest.fixture(scope="module")
def pool():
    return po.GenerativeClassifier(random_state=1).fit(ROWS, Y)


def test_candidates_of_counts_are_judged_with_other_columns(pool):
    judged, skipped = set(pool.cv_results_["member"]), set(pool.skipped_)
    assert judged | skipped == {*pool_candidates(counts=True), "pool"}
    assert {*OF_COUNTS[1:], "rda predictive", "tan 5"} <= judged
    losses = dict(zip(pool.cv_results_["member"], pool.cv_results_["log_loss"], strict=True))
    assert losses["pool"] < 0.5 * losses["rda predictive"]


def test_a_pool_without_log_density_is_reported_without_outliers(pool, tmp_path):
    assert not pool._posterior.has_density
    with pytest.raises(ValueError, match=r"the model has no log p\(x\)"):
        Strangeness.of(pool._posterior)
    page = tmp_path / "page.html"
    po.report(pool, ROWS, Y, page)
    assert "Outliers" not in page.read_text()
    assert "Explained predictions" in page.read_text()


def test_the_pool_reads_columns_of_text():
    texts = [" ".join(f"w{j}" for j in WORDS[[row]].indices) or "none" for row in range(N)]
    table = ROWS.table.with_columns(message=pl.Series(texts))
    found = po.GenerativeClassifier(["nb"], folds=2, columns=po.Columns(text=["message"])).fit(table, Y)
    alone = po.NaiveBayes(columns=po.Columns(text=["message"])).fit(table, Y)
    assert found.schema_.columns[-1].shown_kind == "text"
    assert_allclose(found.members_["nb"].predict_proba(table), alone.predict_proba(table))
    assert (
        "w0"
        in found.explain(table[:9])
        .words[int(np.flatnonzero([" w0 " in f" {text} " for text in texts[:9]])[0])]["message"]
        .factors
    )


@pytest.mark.parametrize("name", ["nb", "scaled 0.1", "compound", "lda predictive", "tan 5"])
def test_members_are_judged_as_refitting_them_would(name):
    """A model that reads no counts is that of the other columns."""
    reads = name in OF_COUNTS
    pool = po.GenerativeClassifier([name, "nb"], folds=3, random_state=1).fit(ROWS, Y)
    fold = pool.out_of_fold_.fold
    loss = 0.0
    for k in range(3):
        inside, outside = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        alone = MODELS[name].make()
        if MODELS[name].of_counts:
            alone.set_params(distributions={"words": MODELS[name].parameters["distributions"], "age": "binned"})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X = ROWS if reads else ROWS.table
            posterior = alone.fit(X[outside], Y[outside]).predict_proba(X[inside])
        loss -= np.log(posterior[np.arange(len(inside)), Y[inside]]).sum() / N
    assert pool.cv_results_["log_loss"][0] == pytest.approx(loss, rel=1e-6)


def test_explanations_are_exact_sums_over_columns_and_words(pool):
    explained = pool.explain(ROWS[:12])
    assert_allclose(explained.posterior, pool.predict_proba(ROWS[:12]), atol=1e-9)
    position = list(explained.feature_names).index("words")
    for i, row in enumerate(explained.words):
        assert_allclose(row["words"].total, explained.log_factors[i, :, position], atol=1e-9)
        assert set(row["words"].factors) == {f"w{j}" for j in WORDS[[i]].indices}


def test_a_saved_pool_is_the_pool(pool, tmp_path):
    po.save(pool, tmp_path / "pool.posteriori")
    again = po.load(tmp_path / "pool.posteriori")
    assert_allclose(again.predict_proba(ROWS), pool.predict_proba(ROWS), rtol=1e-12)
    assert_allclose(again.importance_.increase, pool.importance_.increase)


def test_counts_alone_and_priors():
    """Posteriors under other priors are those of the pool, weighted by the ratio of the priors."""
    plain = po.GenerativeClassifier().fit(WORDS, Y)
    assert {"lda predictive", "tan 5"} <= plain.skipped_.keys()
    priors = np.array([0.5, 0.3, 0.2])
    moved = po.GenerativeClassifier(priors=priors).fit(WORDS, Y).predict_proba(WORDS)
    expected = plain.predict_proba(WORDS) * priors / plain.training_prior_
    assert_allclose(moved, expected / expected.sum(axis=1, keepdims=True), rtol=1e-6)


def test_two_classes_have_no_complement_fractions_no_compound():
    rows, y = drawn(classes=2)
    counts = rows.counts["words"] * 0.5
    found = po.GenerativeClassifier(folds=2).fit(counts, y)
    assert "of two classes" in found.skipped_["complement"]
    assert found.skipped_["compound"] == "some counts of words are fractions"
    assert {"scaled", "presence"} <= set(found.cv_results_["member"])


def test_updates_reach_members_that_read_no_counts():
    pool = po.GenerativeClassifier({"words": "nb", "others": "lda"}, penalty=1e3, folds=2).fit(ROWS, Y)
    more, y = drawn(seed=1)
    pool.partial_fit(more, y)
    both = po.tables.Blocks(
        pl.concat([ROWS.table, more.table]), {"words": vstack([WORDS, more.counts["words"]])}, ROWS.words
    )
    for name, member in (("words", po.NaiveBayes()), ("others", po.GaussianDiscriminant())):
        X = both if name == "words" else both.table
        alone = member.fit(X, np.concatenate([Y, y])).predict_proba(X)
        assert_allclose(pool.members_[name].predict_proba(both), alone, atol=1e-8)
    pool.unlearn(more, y)
    assert_allclose(pool.members_["others"].class_count_, np.bincount(Y))


def test_the_density_stated_for_a_block_is_that_of_all_members():
    model = po.GenerativeClassifier(distributions={"words": "presence", "age": "binned"}, folds=2, penalty=1e3)
    model.fit(ROWS, Y)
    assert "it takes counts as scaled" in model.skipped_["scaled"]
    alone = po.NaiveBayes(distributions={"words": "presence", "age": "binned"}).fit(ROWS, Y)
    assert_allclose(model.members_["nb predictive"].predict_proba(ROWS), alone.predict_proba(ROWS), atol=1e-9)


def test_a_pool_is_cross_validated_by_refits():
    pool = po.GenerativeClassifier(["nb", "lda"], folds=2)
    found = po.cross_validate({"pool": pool}, ROWS, Y, folds=2)
    inside = found.fold == 0
    refitted = po.GenerativeClassifier(["nb", "lda"], folds=2).fit(ROWS[~inside], Y[~inside])
    assert_allclose(found.posteriors["pool"][inside], refitted.predict_proba(ROWS[inside]), atol=1e-9)
    with pytest.raises(TypeError, match="column 'words' is sparse"):
        po.cross_validate(["logistic"], ROWS, Y, folds=2)


def test_errors_name_the_problem(pool):
    with pytest.raises(ValueError, match="no member models the counts of words in column 'words'; add one"):
        po.GenerativeClassifier(["lda", "tan"]).fit(ROWS, Y)
    with pytest.raises(ValueError, match=r"counts of words in column 'words'.*no log p\(x\); use NaiveBayes"):
        pool.score_samples(ROWS)
    with pytest.raises(ValueError, match="no distribution to draw from"):
        pool.sample(2)
    with pytest.raises(ValueError, match="no distribution of column 'words', so that no rows can be drawn"):
        pool.members_["rda predictive"].sample(2)


def test_importance_after_an_update_is_that_of_the_new_rows():
    """As the pool predicted them before it learned from them: the mean loss without each column, by brute force."""
    first, later = np.arange(120), np.arange(120, N)
    complement = po.NaiveBayes(distributions={"words": "complement"})
    pool = po.GenerativeClassifier(["nb", complement], folds=2).fit(ROWS[first], Y[first])
    rows = ROWS[later]
    without_words = po.tables.Blocks(rows.table, {"words": csr_array(rows.counts["words"].shape)}, rows.words)
    without_age = po.tables.Blocks(rows.table.with_columns(age=pl.lit(np.nan)), rows.counts, rows.words)
    truth = np.arange(len(later)), Y[later]
    whole = pool.predict_log_proba(rows)[truth]
    expected = [np.mean(whole - pool.predict_log_proba(some)[truth]) for some in (without_age, without_words)]
    pool.partial_fit(rows, Y[later])
    found = pool.importance_
    assert (found.held_out, found.n_rows) == (True, len(later))
    assert_allclose(found.increase[[0, 2]], expected, rtol=1e-6)
    pool.unlearn(rows, Y[later])
    with pytest.raises(ValueError, match="there are no held-out rows to measure the feature importance on"):
        _ = pool.importance_
