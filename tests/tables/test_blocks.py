"""Sparse blocks of counts: alone, beside columns, in further rows, and in every method of a model."""

import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix, lil_array

import posteriori as po
from posteriori.tables import Bags
from posteriori.tables.blocks import in_vocabulary

RNG = np.random.default_rng(0)
N, V = 90, 7
Y = RNG.integers(0, 3, N)
COUNTS = RNG.poisson(0.4 + 0.4 * np.arange(V) * (Y[:, np.newaxis] == 1)).astype(float)
SPARSE = csr_array(COUNTS)
FRAME = pl.DataFrame({"age": RNG.normal(Y, 1.0), "country": RNG.choice(["no", "de"], N)})
WORDS = [f"w{j}" for j in range(V)]
ROWS = po.tables.Blocks(FRAME, {"words": SPARSE}, {"words": WORDS})
MIXED = po.NaiveBayes().fit(ROWS, Y)


def same(model, other, X):
    assert_allclose(model.predict_log_proba(X), other.predict_log_proba(X), rtol=1e-10)
    assert_allclose(model.score_samples(X), other.score_samples(X), rtol=1e-10)


def test_bags_of_rows_are_the_rows():
    bags = Bags.of_matrix(SPARSE, slice(10, 30))
    assert_array_equal(bags.to_array(), COUNTS[10:30])
    assert_array_equal(bags.to_matrix().toarray(), COUNTS[10:30])
    assert_array_equal(Bags.of_numbers(COUNTS).to_array(), COUNTS)
    assert_array_equal(bags.totals, COUNTS[10:30].sum(axis=1))
    for chosen in (slice(3, 9), np.array([5, 5, 0]), np.arange(20) % 3 == 0, np.array([], int)):
        assert_array_equal(bags.rows(chosen).to_array(), COUNTS[10:30][chosen])
    joined = Bags.joined([bags, Bags.empty(2, V), bags.rows(slice(0, 3))])
    assert_array_equal(joined.to_array(), np.concatenate([COUNTS[10:30], np.zeros((2, V)), COUNTS[10:13]]))


def test_bags_in_another_vocabulary_lose_the_words_that_it_lacks():
    places = np.array([2, -1, 0, 1, -1, 3, 4], np.int32)
    bags, unseen = in_vocabulary(Bags.of_matrix(SPARSE, slice(0, N)), places, 6)
    expected = np.zeros((N, 6))
    expected[:, [2, 0, 1, 3, 4]] = COUNTS[:, [0, 2, 3, 5, 6]]
    assert_array_equal(bags.to_array(), expected)
    assert_array_equal(unseen, np.nonzero(COUNTS[:, [1, 4]])[0])


@pytest.mark.parametrize("layout", [csr_matrix, csc_array, coo_array, lil_array])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_every_layout_and_type_of_a_sparse_matrix_is_read(layout, dtype):
    model = po.NaiveBayes().fit(layout(COUNTS.astype(dtype)), Y)
    same(model, po.NaiveBayes().fit(SPARSE, Y), SPARSE)


def test_cells_stored_twice_add_up_and_the_matrix_is_unchanged():
    rows, columns = COUNTS.nonzero()
    half = COUNTS[rows, columns] / 2
    twice = coo_array((np.concatenate([half, half]), (np.tile(rows, 2), np.tile(columns, 2))), COUNTS.shape)
    compressed = csr_array((np.full(3, 1.0), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, V))
    same(po.NaiveBayes().fit(twice, Y), po.NaiveBayes().fit(SPARSE, Y), SPARSE)
    po.NaiveBayes().fit(SPARSE, Y).predict(compressed)
    assert_array_equal(compressed.indices, [1, 0, 1])


def test_a_row_without_words_has_the_prior():
    model = po.NaiveBayes().fit(SPARSE, Y)
    assert_allclose(model.predict_proba(csr_array((2, V))), np.tile(model.class_prior_, (2, 1)))


def test_a_mixed_model_is_the_product_of_its_parts():
    counts, others = po.NaiveBayes().fit(SPARSE, Y), po.NaiveBayes().fit(FRAME, Y)
    log_joint = counts.explain(SPARSE).log_joint + others.explain(FRAME).log_factors.sum(axis=2)
    explanation = MIXED.explain(ROWS)
    assert explanation.feature_names == ("age", "country", "words")
    assert_allclose(explanation.log_joint, log_joint, rtol=1e-10)
    assert_allclose(explanation.posterior, MIXED.predict_proba(ROWS), rtol=1e-10)
    assert explanation.values[0, 2] == {WORDS[j]: COUNTS[0, j] for j in np.flatnonzero(COUNTS[0])}


@pytest.mark.parametrize("name", ["multinomial", "scaled", "complement", "compound", "presence"])
def test_the_factor_of_a_block_is_a_sum_over_its_words(name):
    explanation = po.NaiveBayes(distributions=name).fit(ROWS, Y).explain(ROWS)
    for i in (0, 40):
        words = explanation.words[i]["words"]
        assert set(words.factors) == {WORDS[j] for j in np.flatnonzero(COUNTS[i])}
        assert_allclose(words.total, explanation.log_factors[i, :, 2], rtol=1e-10)
    assert_allclose(explanation.row(40).words[0]["words"].total, words.total)
    assert po.NaiveBayes().fit(FRAME, Y).explain(FRAME).words == ()


def test_cross_validation_equals_refitting():
    fold = np.arange(N) % 3
    (posterior,) = po.cross_validate(po.NaiveBayes(), ROWS, Y, folds=fold).posteriors.values()
    for k in range(3):
        model = po.NaiveBayes().fit(ROWS[fold != k], Y[fold != k])
        assert_allclose(posterior[fold == k], model.predict_proba(ROWS[fold == k]), rtol=1e-8)


def test_missing_cells_beside_a_block_may_be_informative():
    frame = FRAME.with_columns(pl.when(pl.Series(Y) == 0).then(None).otherwise(pl.col("age")).alias("age"))
    rows = po.tables.Blocks(frame, {"words": SPARSE})
    assert po.NaiveBayes(missing="informative").fit(rows, Y).score(rows, Y) > 0.6
    same(po.NaiveBayes(missing="informative").fit(SPARSE, Y), po.NaiveBayes().fit(SPARSE, Y), SPARSE)


def test_partial_fit_unlearn_and_merge_are_exact():
    first, second = ROWS[:50], ROWS[50:]
    one, two = po.NaiveBayes().fit(first, Y[:50]), po.NaiveBayes().fit(second, Y[50:])
    same(po.merge([one, two]), MIXED, ROWS)
    learned = po.NaiveBayes().partial_fit(first, Y[:50]).partial_fit(second, Y[50:])
    same(learned, MIXED, ROWS)
    same(learned.unlearn(second, Y[50:]), one, ROWS)
    with pytest.raises(ValueError, match="in rows of class 0, column 'words' holds what the model has not learned"):
        one.unlearn(po.tables.Blocks(FRAME[:1], {"words": csr_array(np.full((1, V), 1e6))}, {"words": WORDS}), [0])


def test_whole_weights_are_repeated_rows():
    weight = RNG.integers(0, 3, N)
    repeated = np.repeat(np.arange(N), weight)
    same(po.NaiveBayes().fit(ROWS, Y, weight), po.NaiveBayes().fit(ROWS[repeated], Y[repeated]), ROWS)


def test_a_saved_model_is_the_model(tmp_path):
    for name, model, X in (("mixed", MIXED, ROWS), ("alone", po.NaiveBayes().fit(SPARSE, Y), SPARSE)):
        po.save(model, tmp_path / name)
        loaded = po.load(tmp_path / name)
        assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert loaded.schema_ == model.schema_


def test_leave_one_out_is_refitting_without_the_row():
    left = po.model_selection.leave_one_out(MIXED, ROWS, Y)
    for i in (0, 17, 60):
        others = np.arange(N) != i
        refit = po.NaiveBayes().fit(ROWS[others], Y[others])
        assert_allclose(left.posterior[i], refit.predict_proba(ROWS[[i]])[0], rtol=1e-8)


def test_drawn_rows_are_like_the_training_rows():
    X, _ = MIXED.sample(400, y=1, random_state=0)
    drawn = X.counts["words"].toarray()
    assert X.words == {"words": tuple(WORDS)}
    assert list(X.table.columns) == ["age", "country"]
    assert_allclose(drawn.sum(axis=1).mean(), COUNTS.sum(axis=1).mean(), rtol=0.1)
    share = COUNTS[Y == 1].sum(axis=0) / COUNTS[Y == 1].sum()
    assert_allclose(drawn.sum(axis=0) / drawn.sum(), share, atol=0.03)
    assert isinstance(po.NaiveBayes().fit(SPARSE, Y).sample(3)[0], csr_array)


def test_rows_are_matched_by_words_and_new_words_are_added():
    order = RNG.permutation(V)
    shuffled = po.tables.Blocks(FRAME, {"words": SPARSE[:, order]}, {"words": [WORDS[j] for j in order]})
    assert_allclose(MIXED.predict_proba(shuffled), MIXED.predict_proba(ROWS), rtol=1e-12)
    longer = csr_array(np.column_stack([COUNTS, Y == 2]))
    grown = po.tables.Blocks(FRAME, {"words": longer}, {"words": [*WORDS, "new"]})
    with pytest.warns(UserWarning, match=f"{(Y == 2).sum()} cells of column 'words'"):
        assert_allclose(MIXED.predict_proba(grown), MIXED.predict_proba(ROWS), rtol=1e-12)
    learned = po.NaiveBayes().fit(ROWS, Y).partial_fit(grown, Y)
    both = csr_array(np.concatenate([np.column_stack([COUNTS, np.zeros(N)]), longer.toarray()]))
    names = {"words": [*WORDS, "new"]}
    whole = po.NaiveBayes().fit(po.tables.Blocks(pl.concat([FRAME, FRAME]), {"words": both}, names), np.tile(Y, 2))
    same(learned, whole, grown)


def test_batches_of_many_rows_do_not_change_the_model():
    many = np.tile(np.arange(N), 400)  # more rows than one batch holds
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = po.NaiveBayes(n_jobs=2).fit(SPARSE[many], Y[many])
    assert_allclose(model.statistics_.blocks[0].count, 400 * po.NaiveBayes().fit(SPARSE, Y).statistics_.blocks[0].count)
    assert_allclose(model.predict_proba(SPARSE[many])[-N:], model.predict_proba(SPARSE), rtol=1e-12)


def bad(counts=SPARSE, table=None, words=None):
    return lambda: po.NaiveBayes().fit(po.tables.Blocks(table, {"words": counts}, words), Y)


ERRORS = {
    "no sparse matrix": (bad(COUNTS), TypeError, "block 'words' is a ndarray; give a scipy.sparse matrix of counts"),
    "rows": (bad(table=FRAME[:9]), ValueError, "the parts of X differ in their numbers of rows.*'words': 90, 'table'"),
    "name": (
        lambda: po.NaiveBayes().fit(po.tables.Blocks(FRAME, {"age": SPARSE}), Y),
        ValueError,
        "block 'age' has the name of a column of the table",
    ),
    "words": (bad(words={"words": ["a"]}), ValueError, "block 'words' has 7 columns and 1 words"),
    "word twice": (bad(words={"words": list("abcdefa")}), ValueError, "block 'words' names the word 'a' twice"),
    "gaussian": (
        lambda: po.NaiveBayes(distributions="gaussian").fit(SPARSE, Y),
        TypeError,
        "X is sparse, and the distribution 'gaussian' reads dense columns; X.toarray\\(\\) would take 56 bytes per row",
    ),
    "named gaussian": (
        lambda: po.NaiveBayes(distributions={"words": "poisson"}).fit(ROWS, Y),
        TypeError,
        "column 'words' is sparse, and the distribution 'poisson' reads dense columns",
    ),
    "dense model": (
        lambda: po.GaussianDiscriminant().fit(SPARSE, Y),
        TypeError,
        "X is sparse, and this estimator reads dense columns; X.toarray\\(\\) would take 5,040 bytes",
    ),
    "pool": (
        lambda: po.GenerativeClassifier(["lda"]).fit(SPARSE, Y),
        ValueError,
        "members holds 'lda', but it reads dense columns, and X holds sparse counts only",
    ),
    "mixture": (lambda: po.MixtureModel(2).fit(SPARSE), TypeError, "X is sparse, and this estimator reads dense col"),
    "fitted dense": (
        lambda: po.NaiveBayes().fit(COUNTS, Y).predict(SPARSE),
        TypeError,
        "X is sparse, and this NaiveBayes was fitted on dense columns",
    ),
    "fitted sparse": (
        lambda: po.NaiveBayes().fit(SPARSE, Y).predict(COUNTS),
        ValueError,
        "column 'counts' was a sparse block of counts in training; give a scipy.sparse matrix",
    ),
    "width": (
        lambda: po.NaiveBayes().fit(SPARSE, Y).predict(SPARSE[:, :5]),
        ValueError,
        "X has 5 features, but NaiveBayes is expecting 7 features as input",
    ),
    "width later": (
        lambda: po.NaiveBayes().partial_fit(SPARSE, Y).partial_fit(SPARSE[:, :5], Y),
        ValueError,
        "X has 5 features, but NaiveBayes is expecting 7",
    ),
    "negative": (bad(-SPARSE, words={"words": WORDS}), ValueError, "column 'words' holds -.* for word 'w.' in row 0"),
    "infinite": (bad(SPARSE * np.inf), ValueError, "column 'words' holds inf for word"),
    "missing": (bad(SPARSE * np.nan), ValueError, "column 'words' lacks a count in row 0.*put 0 where a word"),
    "missing, dense": (
        lambda: po.NaiveBayes(distributions="multinomial").fit(np.where(COUNTS == 3, np.nan, COUNTS), Y),
        ValueError,
        "column 'x.' lacks a count in row .*put 0 where a word does not occur",
    ),
    "negative, dense": (
        lambda: po.NaiveBayes(distributions="multinomial").fit(-COUNTS, Y),
        ValueError,
        "column 'x.' holds -.* in row 0, but its distribution is multinomial: a count or a weight of a word, 0 or more",
    ),
}


@pytest.mark.parametrize(("action", "error", "match"), ERRORS.values(), ids=ERRORS)
def test_errors_name_the_problem(action, error, match):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error, match=match):
            action()


@pytest.mark.parametrize("index", [-1, 5, 2**32 + 1])
def test_an_index_outside_of_the_columns_is_an_error(index):
    X = csr_array(np.eye(4, 5))
    X.indices = X.indices.astype(np.int64)
    X.indices[2] = index
    X.has_canonical_format = True
    with pytest.raises(ValueError, match="X is not a valid sparse matrix: it has an index outside of its 5 columns"):
        po.NaiveBayes(distributions="multinomial").fit(X, ["a", "b", "a", "b"])
