"""Columns of text: recognised, cut into words as CountVectorizer does, and modelled by the counts of the words."""

import pickle

import numpy as np
import polars as pl
import pytest
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

import posteriori as po
from posteriori.reading import texts
from posteriori.reading.texts import RowsWithWord, looks_like_text
from posteriori.sources import table_source
from posteriori.tables.tokenizer import Tokenizer

WORDS = [f"wörd{i}" for i in range(80)]


def messages(n=120, seed=0):
    """Return n messages and their classes; the classes prefer other words."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(len(WORDS), 0.3), 2)
    y = np.where(rng.random(n) < 0.5, "spam", "ham")
    drawn = [rng.choice(WORDS, rng.integers(5, 15), p=shares[int(label == "spam")]) for label in y]
    return [" ".join(words).capitalize() + "!" for words in drawn], y


TEXTS, Y = messages()
FRAME = pl.DataFrame({"age": np.random.default_rng(1).normal(size=len(Y)), "message": TEXTS})


@pytest.fixture(scope="module")
def model():
    return po.NaiveBayes().fit(FRAME, Y)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"ngram_range": (1, 2), "stop_words": ["wörd3", "wörd5"], "min_df": 3},
        {"lowercase": False, "strip_accents": "unicode", "max_df": 0.4, "binary": True},
        {"analyzer": "char_wb", "ngram_range": (2, 3)},
        {"token_pattern": r"\d+", "min_df": 0.1},
    ],
)
def test_a_column_of_text_has_the_counts_of_count_vectorizer(settings):
    vectorizer = CountVectorizer(**settings)
    counts = vectorizer.fit_transform(TEXTS)
    rows = po.tables.Blocks(FRAME.select("age"), {"message": counts}, {"message": vectorizer.get_feature_names_out()})
    reference = po.NaiveBayes().fit(rows, Y)
    found = po.NaiveBayes(columns=po.Columns(text={"message": settings})).fit(FRAME, Y)
    column = found.schema_.columns[1]
    assert column.words == tuple(vectorizer.get_feature_names_out())
    assert column.shown_kind == "text"
    np.testing.assert_allclose(found.predict_log_proba(FRAME), reference.predict_log_proba(rows), atol=1e-10)


@pytest.mark.parametrize(
    "read",
    [
        pl.DataFrame.to_pandas,
        pl.DataFrame.to_arrow,
        pl.DataFrame.to_dicts,
        lambda frame: frame.select("message", "age"),
    ],
)
def test_rows_of_any_kind_have_the_same_posterior(model, read):
    rows = FRAME[:9].with_columns(message=pl.when(pl.int_range(9) != 4).then("message"))  # one text is missing
    np.testing.assert_array_equal(model.predict_log_proba(read(rows)), model.predict_log_proba(rows))


def test_an_array_of_objects_may_hold_text(model):
    rows = FRAME.to_numpy()
    found = po.NaiveBayes().fit(rows, Y)
    np.testing.assert_allclose(found.predict_log_proba(rows), model.predict_log_proba(FRAME), atol=1e-12)


def test_missing_texts_and_unknown_words_change_no_posterior(model):
    rows = [{"age": 0.3}, {"age": 0.3, "message": None}, {"age": 0.3, "message": "utterly unknown phrases"}]
    alone = po.NaiveBayes().fit(FRAME.select("age"), Y).predict_log_proba([{"age": 0.3}])
    np.testing.assert_allclose(model.predict_log_proba(rows), np.repeat(alone, 3, axis=0), atol=1e-12)


@pytest.mark.parametrize("write", [pl.DataFrame.write_parquet, pl.DataFrame.write_csv])
def test_texts_in_files_give_the_model_of_rows_in_memory(model, tmp_path, write):
    path = tmp_path / ("t.parquet" if write is pl.DataFrame.write_parquet else "t.csv")
    write(FRAME.with_columns(kind=pl.Series(Y)), path)
    found = po.NaiveBayes().fit(po.scan(path, target="kind"))
    assert found.schema_.columns[1].words == model.schema_.columns[1].words
    np.testing.assert_allclose(found.predict_log_proba(FRAME), model.predict_log_proba(FRAME), atol=1e-12)
    np.testing.assert_array_equal(found.predict_log_proba(po.scan(path)), found.predict_log_proba(FRAME))


def test_later_rows_extend_the_vocabulary(model):
    halves = [(FRAME[:50], Y[:50]), (FRAME[50:], Y[50:])]
    found = po.NaiveBayes()
    for rows, labels in halves:
        found.partial_fit(rows, labels)
    assert set(found.schema_.columns[1].words) == set(model.schema_.columns[1].words)
    np.testing.assert_allclose(found.predict_log_proba(FRAME), model.predict_log_proba(FRAME), atol=1e-10)
    found.unlearn(*halves[1])
    assert found.class_count_.sum() == 50


def test_the_vocabulary_is_in_the_model_file(model, tmp_path):
    path = tmp_path / "m.posteriori"
    po.save(model, path)
    row = {"age": 0.1, "message": TEXTS[0]}
    expected = model.predict_proba(FRAME[:1].with_columns(age=pl.lit(0.1)))[0]
    np.testing.assert_array_equal(po.load(path).predict_log_proba(FRAME), model.predict_log_proba(FRAME))
    for score in (po.scoring.load_scorer(path), pickle.loads(pickle.dumps(model.scorer()))):
        np.testing.assert_allclose(list(score(row).values()), expected, rtol=1e-9)


NAMES = [f"Kim-{i} Person{i}x, of House{i} No{i} Way{i}" for i in range(60)]
ANSWERS = ["I strongly agree with this statement", "I do not agree with this statement"] * 30


@pytest.mark.parametrize(
    ("cells", "expected"),
    [(TEXTS, True), (TEXTS[:19], False), (NAMES, False), (ANSWERS, False), ([f"item {i}" for i in range(60)], False)],
)
def test_text_is_told_from_identifiers_and_categories(cells, expected):
    assert looks_like_text(cells) is expected


@pytest.mark.parametrize(
    "columns",
    [
        po.Columns(keep=["message"]),
        po.Columns(categorical_features=["message"]),
        po.Columns(text=None, keep=["message"]),
    ],
    ids=str,
)
def test_columns_that_parameters_name_are_categories(columns):
    assert po.NaiveBayes(columns=columns).fit(FRAME, Y).schema_.columns[1].kind == "categorical"


def test_a_named_column_is_text_whatever_it_looks_like():
    rows = pl.DataFrame({"answer": ANSWERS})
    found = po.NaiveBayes(columns=po.Columns(text=["answer"]), distributions={"answer": "presence"}).fit(
        rows, ["a", "b"] * 30
    )
    assert found.schema_.columns[0].words == ("agree", "do", "not", "statement", "strongly", "this", "with")
    assert found.score(rows, ["a", "b"] * 30) == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (["age"], "column 'age' is read as text, which is strings, but holds"),
        (["massage"], "text names 'massage', which is not a feature of X"),
        ({"message": {"ngrams": 2}}, "text has no setting 'ngrams'"),
        ({"message": {"ngram_range": (2, 1)}}, "ngram_range is"),
        ({"message": {"stop_words": "german"}}, "stop_words is 'german'"),
        ({"message": {"token_pattern": "("}}, "is no pattern"),
        ({"message": {"min_df": 2.0}}, "min_df is 2.0"),
        ({"message": {"min_df": 1000}}, "no cell of column 'message' has a word"),
        ({"message": {"n_features": 0}}, "n_features is 0"),
        ({"message": {"n_features": 64, "min_df": 2}}, "there is no vocabulary that min_df could limit"),
        ({"age": {"n_features": 64}}, "column 'age' is read as text, which is strings, but holds"),
    ],
)
def test_errors_name_the_column_and_the_setting(text, message):
    with pytest.raises(ValueError, match=message):
        po.NaiveBayes(columns=po.Columns(text=text)).fit(FRAME, Y)


def test_a_number_in_place_of_a_text_is_an_error(model):
    with pytest.raises(ValueError, match="column 'message' is read as text"):
        model.predict([{"age": 0.3, "message": 7}])


HASHED = {"message": {"n_features": 1 << 10, "ngram_range": (1, 2)}}


def test_hashed_words_are_those_of_hashing_vectorizer(tmp_path):
    vectorizer = HashingVectorizer(n_features=1 << 10, ngram_range=(1, 2), alternate_sign=False, norm=None)
    rows = po.tables.Blocks(FRAME.select("age"), {"message": vectorizer.transform(TEXTS)})
    expected = po.NaiveBayes().fit(rows, Y).predict_log_proba(rows)
    found = po.NaiveBayes(columns=po.Columns(text=HASHED)).fit(FRAME, Y)
    assert (found.schema_.columns[1].width, found.schema_.columns[1].words) == (1 << 10, ())
    assert found.schema_.columns[1].shown_kind == "text"
    parts = [(FRAME[:50], Y[:50]), (FRAME[50:], Y[50:])]
    later = po.NaiveBayes(columns=po.Columns(text=HASHED))
    for some, labels in parts:
        later.partial_fit(some, labels)
    merged = po.merge([po.NaiveBayes(columns=po.Columns(text=HASHED)).fit(*part) for part in parts])
    FRAME.with_columns(kind=pl.Series(Y)).write_parquet(tmp_path / "t.parquet")
    scanned = po.NaiveBayes(columns=po.Columns(text=HASHED)).fit(po.scan(tmp_path / "t.parquet", target="kind"))
    po.save(found, tmp_path / "m.posteriori")
    for model in (found, later, merged, scanned, po.load(tmp_path / "m.posteriori")):
        np.testing.assert_allclose(model.predict_log_proba(FRAME), expected, atol=1e-10)
    later.unlearn(*parts[1])
    assert later.class_count_.sum() == 50


def test_hashed_words_cannot_be_read():
    model = po.NaiveBayes(columns=po.Columns(text=HASHED)).fit(FRAME, Y)
    assert all(word.startswith("hash ") for word in model.explain(FRAME[:1]).words[0]["message"].factors)
    with pytest.raises(ValueError, match="the words of column 'message' are hashed, so that no text can be written"):
        model.sample(2)
    with pytest.raises(ValueError, match="fit both with the same one"):
        po.merge([model, po.NaiveBayes(columns=po.Columns(text={"message": {"n_features": 64}})).fit(FRAME, Y)])


def test_merged_models_have_the_words_of_both(model):
    parts = [po.NaiveBayes().fit(FRAME[rows], Y[rows]) for rows in (slice(0, 60), slice(60, None))]
    merged = po.merge(parts)
    assert set(merged.schema_.columns[1].words) == set(model.schema_.columns[1].words)
    np.testing.assert_allclose(merged.predict_log_proba(FRAME), model.predict_log_proba(FRAME), atol=1e-10)


def test_the_vocabulary_is_that_of_the_words_in_most_rows():
    rows_with = RowsWithWord.of(["a1 b1 b1", "b1 c1", "c1 b1 d1", None], Tokenizer())
    assert rows_with.counts == {"a1": 1, "b1": 3, "c1": 2, "d1": 1}
    assert Tokenizer(max_features=3).selected(rows_with.counts, rows_with.n_rows) == ("a1", "b1", "c1")


def test_the_rarest_words_are_forgotten_beyond_the_bound(monkeypatch):
    monkeypatch.setattr(texts, "_MOST_COUNTED", 4)
    one = RowsWithWord({"a": 5, "b": 1, "c": 2}, 6)
    both = one + RowsWithWord({"d": 1, "e": 3, "a": 1}, 4)
    assert both.counts == {"a": 6, "e": 3}
    assert both.n_rows == 10


def test_drawn_rows_have_texts_of_the_vocabulary(model):
    rows, labels = model.sample(200, random_state=0)
    assert rows.columns == ["age", "message"]
    assert set(" ".join(rows["message"]).split()) <= set(model.schema_.columns[1].words)
    assert model.score(rows, labels) > 0.9


@pytest.fixture
def cut(monkeypatch):
    """Collect the texts that are cut into words."""
    seen, transform, fit_transform = [], CountVectorizer.transform, CountVectorizer.fit_transform

    def counted(method):
        def wrapped(self, cells, *rest):
            seen.extend(cells)
            return method(self, cells, *rest)

        return wrapped

    monkeypatch.setattr(CountVectorizer, "transform", counted(transform))
    monkeypatch.setattr(CountVectorizer, "fit_transform", counted(fit_transform))
    return seen


@pytest.mark.parametrize("make", [po.NaiveBayes, lambda: po.GenerativeClassifier(folds=2, random_state=0)])
def test_a_text_in_memory_is_cut_into_words_once(cut, make, monkeypatch, tmp_path):
    model = make().fit(FRAME, Y)
    assert sorted(cut) == sorted(TEXTS)
    cut.clear()
    expected = model.predict_log_proba(FRAME)
    assert sorted(cut) == sorted(TEXTS)
    cut.clear()
    FRAME.with_columns(kind=pl.Series(Y)).write_parquet(tmp_path / "t.parquet")
    scanned = make().fit(po.scan(tmp_path / "t.parquet", target="kind"))
    assert sorted(cut) == sorted(TEXTS * 2)  # a stream has a pass for the vocabulary
    for module, name in ((texts, "MOST_KEPT"), (table_source, "_MOST_HELD")):
        monkeypatch.setattr(module, name, 5_000)  # bytes; then the words are counted in each pass
    cut.clear()
    model.fit(FRAME, Y)
    assert len(cut) >= 2 * len(TEXTS)
    for found in (model, scanned):
        np.testing.assert_allclose(found.predict_log_proba(FRAME), expected, atol=1e-8)


def test_later_rows_and_rows_without_any_word_are_cut_once_too(cut):
    model = po.NaiveBayes().fit(FRAME[:60], Y[:60])
    cut.clear()
    rows = FRAME[60:].with_columns(message=pl.when(pl.int_range(60) > 2).then("message"))
    model.partial_fit(rows, Y[60:]).partial_fit(FRAME[:4].with_columns(message=pl.lit("!")), Y[:4])
    assert len(cut) == 64
    whole = pl.concat([FRAME[:60], rows, FRAME[:4].with_columns(message=pl.lit("!"))])
    again = po.NaiveBayes().fit(whole, [*Y, *Y[:4]])
    np.testing.assert_allclose(model.predict_log_proba(FRAME), again.predict_log_proba(FRAME), atol=1e-10)


def test_repeated_messages_are_text_and_long_categories_are_none():
    rng = np.random.default_rng(2)
    words = ["see", "you", "at", "home", "later", "we", "can", "talk", "about", "the", "day", "and", "eat"]
    messages = [" ".join(rng.choice(words, 8)) for _ in range(113)]
    assert looks_like_text(rng.choice(messages, 300).tolist())
    assert not looks_like_text(rng.choice(messages[:30], 300).tolist())
