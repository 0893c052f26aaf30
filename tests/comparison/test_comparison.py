"""Learning curves: which rows are learned from, how models are judged, and where curves cross."""

import inspect
import re
from functools import partial
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import hstack
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

mpl.use("Agg")

import matplotlib.pyplot as plt

import posteriori as po
from posteriori.comparison import Comparison, discriminative
from posteriori.comparison.models import chosen_models, is_generative, read_rows, stratified_order
from posteriori.comparison.result import find_crossing
from posteriori.datasets import load_penguins
from posteriori.model_selection.metrics import log_loss
from posteriori.registry import COMPARED, CROSS_VALIDATED, MODELS

PENGUINS = load_penguins()
FAST = {"naive Bayes": "nb", "logistic regression": "logistic"}


@pytest.fixture(autouse=True)
def _tidy():
    with threadpool_limits(1):  # boosting of a few rows waits for its threads longer than it works
        yield
    plt.close("all")


def compared(seed):
    return po.compare(FAST, PENGUINS, "species", sizes=[6, 20, 200], repeats=3, random_state=seed)


@pytest.fixture(scope="module")
def found():
    return compared(1)


# What is measured -----------------------------------------------------------------------------------------------


def test_scores_are_those_of_a_fit_by_hand(found):
    rng = np.random.default_rng(1)
    rows = read_rows(PENGUINS, "species", "from_dtype")
    order = stratified_order(rows.y_true, rng)
    X, y = PENGUINS.drop("species"), PENGUINS["species"]
    model = po.NaiveBayes().fit(X[order[:200]], y[order[:200]])
    test = order[258:]
    score = found.scores.filter(repeat=0, n_rows=200, model="naive Bayes").row(0, named=True)
    assert_allclose(score["accuracy"], model.score(X[test], y[test]))
    components = np.searchsorted(model.classes_, y[test].to_list())
    assert_allclose(score["log_loss"], log_loss(components, model.predict_proba(X[test])))


def test_the_logistic_peer_is_the_pipeline_that_everybody_writes():
    X, y = PENGUINS.drop("species"), PENGUINS["species"].to_list()
    numbers = [name for name in X.columns if X[name].dtype.is_numeric()]
    strings = [name for name in X.columns if name not in numbers]
    frame = X.to_pandas()
    frame[strings] = frame[strings].astype(object).where(frame[strings].notna(), np.nan)
    pipeline = make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
            (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")), strings),
        ),
        LogisticRegression(max_iter=1000),
    ).fit(frame, y)
    ours = discriminative("logistic").fit(X, y)
    assert_allclose(ours.predict_proba(X), pipeline.predict_proba(frame), atol=1e-4)
    assert_array_equal(ours.classes_, pipeline.classes_)


def test_boosting_is_given_codes_and_missing_cells_as_they_are():
    sky = ["a", "b", None, "c"] * 30
    wind = np.where(np.arange(120) % 7 == 0, np.nan, np.arange(120.0))
    y = np.arange(120) % 3
    ours = discriminative("boosting").fit(pl.DataFrame({"sky": sky, "wind": wind}), y)
    codes = [{"a": 0.0, "b": 1.0, None: np.nan, "c": 2.0}[cell] for cell in sky]
    plain = HistGradientBoostingClassifier(categorical_features=[False, True])
    plain.fit(np.column_stack([wind, codes]), y)
    expected = plain.predict_proba(np.column_stack([wind, codes]))
    assert_allclose(ours.predict_proba(pl.DataFrame({"sky": sky, "wind": wind})), expected)


def test_boosting_takes_more_categories_than_it_can_tell_apart():
    X = pl.DataFrame({"name": [f"n{row % 300}" for row in range(900)]})
    assert discriminative("boosting").fit(X, np.arange(900) % 2).predict_proba(X).shape == (900, 2)


# All peers read tables by the same columns, and only boosting takes codes and gaps as they are.
@pytest.mark.parametrize(
    "name",
    [
        "logistic",
        "boosting",
        "forest",
        LogisticRegression(),
    ],
    ids=str,
)
def test_every_peer_reads_every_table_mixed_and_with_gaps(name, constructor, columns, labels):
    X = constructor(columns)
    model = discriminative(name).set_params(random_state=0).fit(X, labels)
    posterior = model.predict_proba(X)
    assert_allclose(posterior.sum(axis=1), 1.0)
    assert set(model.predict(X)) <= {"no", "yes"}
    strange = constructor({**columns, "sky": ["never seen", *columns["sky"][1:]]})
    assert np.isfinite(model.predict_proba(strange)).all()


@pytest.mark.parametrize("name", ["logistic", "boosting", "forest"])
def test_columns_without_training_values_change_no_prediction(name):
    y = [0, 1] * 30
    X = pl.DataFrame({"x": np.arange(60.0) % 7, "gone": [None] * 60, "lost": pl.Series([None] * 60, dtype=pl.String)})
    model = discriminative(name).set_params(random_state=0).fit(X.with_columns(pl.col("gone").cast(pl.Float64)), y)
    plain = discriminative(name).set_params(random_state=0).fit(X.select("x"), y)
    found = X.with_columns(gone=pl.lit(3.0), lost=pl.lit("back"))
    if name == "logistic":  # a constant column takes no weight; a forest would draw other columns at its splits
        assert_allclose(model.predict_proba(X), plain.predict_proba(X.select("x")), atol=1e-6)
    assert np.isfinite(model.predict_proba(found)).all()


def test_an_unknown_category_is_not_taken_for_the_most_frequent():
    X = pl.DataFrame({"sky": ["clear"] * 6 + ["fog"] * 3})
    model = discriminative("logistic").fit(X, [0] * 5 + [1] * 4)
    clear, strange, missing = model.predict_proba(pl.DataFrame({"sky": ["clear", "new", None]}))[:, 0]
    assert missing == clear
    assert strange != clear


@pytest.mark.parametrize("constructor", [pl.DataFrame, pd.DataFrame])
def test_every_model_named_takes_a_mixed_table_with_gaps(constructor, columns, labels):
    X = constructor({name: cells * 6 for name, cells in columns.items()})
    # Variants are members of pools, and models of counts learn from rows without gaps.
    # A pool has tests of its own on such tables, and fits all of them.
    names = [name for name, spec in MODELS.items() if " " not in name and not spec.of_counts and name != "pool"]
    found = po.compare(names, X, labels * 6, sizes=[12], repeats=1, random_state=0)
    assert found.models == tuple(MODELS[name].title for name in names)
    assert found.scores.select("accuracy", "log_loss", "brier").null_count().sum_horizontal().item() == 0
    assert np.isfinite(found.scores["log_loss"].to_numpy()).all()


def test_the_seed_decides_all_but_the_times(found):
    again, other = compared(1), compared(2)
    kept = ["model", "n_rows", "repeat", "accuracy", "log_loss", "brier"]
    assert found.scores.select(kept).equals(again.scores.select(kept))
    assert not found.scores.select(kept).equals(other.scores.select(kept))


def test_models_that_draw_are_seeded():
    runs = [
        po.compare({"forest": discriminative("forest")}, PENGUINS, "species", sizes=[30], repeats=1, random_state=0)
        for _ in range(2)
    ]
    assert runs[0].scores["log_loss"].to_list() == runs[1].scores["log_loss"].to_list()


def test_a_class_that_training_lacks_has_probability_0():
    rng = np.random.default_rng(0)
    y = np.array(["a"] * 60 + ["b"] * 50 + ["c"] * 10)
    found = po.compare(["nb", "logistic"], rng.normal(size=(120, 2)), y, sizes=[2], repeats=1, random_state=0)
    share = 10 / 120
    assert found.scores["log_loss"].min() > 0.7 * share * 36
    assert found.scores["log_loss"].max() <= 36.1


def test_a_category_that_is_stated_is_one_for_every_model():
    X = pl.DataFrame({"code": [1.0, 2.0, 3.0] * 40})
    y = [row % 3 == 1 for row in range(120)]  # the middle code: no line separates it, an indicator does
    found = po.compare(FAST, X, y, sizes=[90], repeats=1, random_state=0, categorical_features=["code"])
    assert found.scores["accuracy"].to_list() == [1.0, 1.0]


def test_warnings_of_the_models_are_kept_and_not_shown():
    found = po.compare(["qda"], PENGUINS, "species", sizes=[4], repeats=2, random_state=0)
    assert set(found.notes["model"]) == {"QDA"}
    assert "singular" in " ".join(found.notes["message"])
    assert found.notes["repeats"].max() <= 2


def test_progress_adds_up():
    done = []
    po.compare(FAST, PENGUINS, "species", sizes=[5, 10], repeats=2, progress=done.append)
    assert sum(done) == 2 * 2 * 15


def test_any_classifier_of_scikit_learn():
    X = np.random.default_rng(0).normal(size=(80, 3))
    models = {"theirs": GaussianNB(), "ours": po.drop_in.GaussianNB(), "wrapped": discriminative(GaussianNB())}
    found = po.compare(models, X, X[:, 0] > 0, sizes=[40], repeats=2, random_state=0)
    assert found.generative == ("theirs", "ours")
    theirs, ours = (found.scores.filter(pl.col("model") == name)["log_loss"].to_numpy() for name in ("theirs", "ours"))
    assert_allclose(theirs, ours)


def test_which_models_are_generative():
    kinds = {name: is_generative(spec.make()) for name, spec in MODELS.items()}
    assert kinds == {name: spec.generative for name, spec in MODELS.items()}
    assert [name for name, kind in kinds.items() if not kind] == ["logistic", "boosting", "random forest"]
    assert {*COMPARED, *CROSS_VALIDATED} <= set(MODELS)
    assert is_generative(make_pipeline(StandardScaler(), GaussianNB()))


# Where curves cross ---------------------------------------------------------------------------------------------


@given(
    st.floats(1.5, 400.0),
    st.floats(0.1, 5.0),
    st.lists(st.integers(2, 1000), min_size=2, max_size=8, unique=True),
)
def test_a_lead_that_is_linear_in_log_n_crosses_with_the_line(position, slope, sizes):
    n = np.array(sorted(sizes))
    crossing = find_crossing(n, -slope * np.log(n / position)[:, np.newaxis])
    if n[0] < position < n[-1]:
        assert crossing.n_rows == pytest.approx(position)
        assert (crossing.first, crossing.last, crossing.n_crossings) == (1, -1, 1)
    elif position < n[0] or position > n[-1]:
        assert crossing.n_rows is None
        assert crossing.first == crossing.last == (1 if position > n[-1] else -1)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=8))
def test_who_leads_one_way_trails_the_other(mean):
    n = 10 * 2 ** np.arange(len(mean))
    lead = np.array(mean)[:, np.newaxis]
    one, other = find_crossing(n, lead), find_crossing(n, -lead)
    assert (one.first, one.last) == (-other.first, -other.last)
    assert one.n_crossings == other.n_crossings
    if one.n_rows is not None:
        assert n[0] <= one.n_rows <= n[-1]
        assert one.first == -one.last
        assert one.n_rows == pytest.approx(other.n_rows)


def test_crossings_at_sizes_where_the_curves_meet():
    n = np.array([10, 100, 1000, 10_000])
    assert find_crossing(n[:3], np.array([[1.0], [0.0], [-1.0]])).n_rows == pytest.approx(100)
    assert find_crossing(n, np.array([[1.0], [0.0], [0.0], [-1.0]])).n_rows == pytest.approx(10**2.5)
    assert find_crossing(n[:3], np.array([[1.0], [0.0], [1.0]])).n_rows is None
    assert find_crossing(n[:2], np.zeros((2, 1))).last == 0


def test_a_crossing_is_sure_when_the_lead_is_clear_on_both_sides():
    n = np.array([10, 100, 1000])
    one, faint, other = [1.0, 1.1], [-1.0, 1.2], [-1.0, -1.1]
    assert find_crossing(n[1:], np.array([one, other])).sure
    assert find_crossing(n, np.array([one, faint, other])).sure
    assert not find_crossing(n[1:], np.array([faint, other])).sure
    assert not find_crossing(n[1:], np.array([one, [-5.0, 3.0]])).sure
    assert not find_crossing(n[1:], np.array([[1.0], [-1.0]])).sure


def test_crossings_of_a_comparison_follow_the_scores(found):
    lead = found.crossings.filter(pl.col("measure") == "log_loss").row(0, named=True)
    means = found.summary.pivot("model", index="n_rows", values="log_loss")
    best = means.row(-1, named=True)
    expected = min(FAST, key=best.get)
    assert lead["leads_after"] == expected
    assert len(found.crossings) == 3


def test_few_rows_favour_naive_bayes_many_logistic_regression():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=4000)
    shared = rng.normal(size=(4000, 1))
    X = np.concatenate(
        [(y[:, np.newaxis] - 0.5) + rng.normal(size=(4000, 2)), shared + 0.3 * rng.normal(size=(4000, 6))], 1
    )
    X[:, 2:] += 0.6 * (y[:, np.newaxis] - 0.5)
    plain = {"naive Bayes": po.NaiveBayes(), "logistic": discriminative(LogisticRegression(C=np.inf, max_iter=1000))}
    found = po.compare(plain, X, y, sizes=[10, 100, 1000], repeats=5, random_state=0)
    crossing = found.crossings.filter(pl.col("measure") == "log_loss").row(0, named=True)
    assert (crossing["leads_before"], crossing["leads_after"]) == ("naive Bayes", "logistic")
    assert 10 < crossing["n_rows"] < 1000


# What is shown --------------------------------------------------------------------------------------------------


def test_the_summary_is_the_mean_and_its_standard_error(found):
    rows = found.scores.filter((pl.col("model") == "naive Bayes") & (pl.col("n_rows") == 20))["log_loss"].to_numpy()
    row = found.summary.row(by_predicate=(pl.col("model") == "naive Bayes") & (pl.col("n_rows") == 20), named=True)
    assert row["log_loss"] == pytest.approx(rows.mean())
    assert row["log_loss_error"] == pytest.approx(rows.std(ddof=1) / 3**0.5)


def test_text_and_html(found):
    text = str(found)
    assert "3 repeats, 86 rows to test" in text
    assert "logistic regression" in text.splitlines()[3]
    written = ElementTree.fromstring(f"<div>{found._repr_html_()}</div>")
    shown = [one.text for one in written.iter() if one.tag in ("th", "td")]
    in_text = {cell for line in text.splitlines() for cell in re.split("  +", line.strip())}
    assert len(shown) == 3 * (len(found.sizes) + 1) * (len(found.models) + 1)
    assert set(shown) <= in_text
    assert [one.text for one in written.iter("p")][1:] == text.splitlines()[-len(list(written.iter("p"))) + 1 :]
    once = po.compare(["nb"], PENGUINS, "species", sizes=[20], repeats=1)
    assert "±" not in str(once)
    assert once.summary["log_loss_error"].to_list() == [None]


def test_cross_validation_shows_titles_as_text():
    found = po.cross_validate({"<b>nb</b>": po.NaiveBayes(), "tan": "tan"}, PENGUINS, "species", folds=3)
    written = ElementTree.fromstring(found._repr_html_())
    assert "3 folds, 344 rows" in written.find("caption").text
    for line in written.findall("./tbody/tr"):
        name, *cells = [cell.text for cell in line]
        row = found.table.row(by_predicate=pl.col("model") == name, named=True)
        assert cells[0] == f"{row['log_loss']:.4f} ± {row['log_loss_se']:.4f}"
        assert name in str(found)
    assert written.find(".//b") is None


@pytest.mark.parametrize("measure", ["accuracy", "log_loss", "brier", "fit_seconds", "predict_seconds"])
def test_the_picture_shows_the_means(found, measure):
    ax = found.plot(measure)
    lines = {line.get_label(): line for line in ax.lines}
    assert set(lines) == set(found.models)
    for model, line in lines.items():
        rows = found.summary.filter(pl.col("model") == model)
        assert_allclose(line.get_xdata(), rows["n_rows"])
        assert_allclose(line.get_ydata(), rows[measure])
    assert lines["naive Bayes"].get_linestyle() == "-"
    assert lines["logistic regression"].get_linestyle() == "--"
    assert len(ax.collections) == 2  # the bands
    assert po.plotting.plot_learning_curves(found, measure, ax=ax) is ax


# What is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"models": ["nb", "svm"]}, "there is no model 'svm'"),
        ({"models": ["nb", po.NaiveBayes(), po.NaiveBayes()]}, "two models have the title 'NaiveBayes'"),
        ({"models": []}, "models is empty"),
        ({"sizes": [1, 10]}, "sizes holds 1; give whole numbers from 2 to 258"),
        ({"sizes": [10, 259]}, "sizes holds 259"),
        ({"sizes": [10.5]}, "sizes holds 10.5"),
        ({"sizes": []}, "sizes is empty"),
        ({"repeats": 0}, "repeats is 0"),
        ({"repeats": 10**20}, "repeats is 1.*; give a whole number from 1 to 1000"),
        ({"n_jobs": -1}, "n_jobs is -1"),
        ({"test_share": 1.0}, "test_share is 1.0"),
        ({"test_share": 0.999}, "leaves 0 for training"),
    ],
)
def test_refusals(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        po.compare(**{"models": ["nb"], "X": PENGUINS, "y": "species", **options})


def test_refusals_of_tables_and_models(found):
    with pytest.raises(ValueError, match="one class only"):
        po.compare(["nb"], PENGUINS, ["a"] * 344)
    with pytest.raises(ValueError, match="column 'x1' holds inf in row 3"):
        po.compare(["nb"], np.array([[0.0, np.inf if row == 3 else 0.0] for row in range(20)]), [0, 1] * 10)
    with pytest.raises(ValueError, match="no column beside"):
        po.compare(["nb"], PENGUINS.select("species"), "species")
    with pytest.raises(TypeError, match="has no predict_proba"):
        po.compare([LinearSVC()], PENGUINS, "species")
    with pytest.raises(ValueError, match=r"'LogisticRegression' cannot learn from 10 of the rows: .*discriminative"):
        po.compare([LogisticRegression()], PENGUINS, "species")
    with pytest.raises(ValueError, match="measure is 'f1'"):
        found.plot("f1")
    with pytest.raises(ValueError, match="classifier is 'svm'"):
        discriminative("svm").fit(PENGUINS, "species")
    with pytest.raises(TypeError, match="no predict_proba"):
        discriminative(LinearSVC()).fit(PENGUINS, "species")


@pytest.mark.parametrize("models", ["nb", ["logistic"]], ids=["one pass", "refitted"])
def test_a_splitter_of_scikit_learn_gives_the_folds(models):
    rows, y = np.random.default_rng(0).normal(size=(30, 2)), np.repeat(["u", "v"], [20, 10])
    splitter = StratifiedKFold(3, shuffle=True, random_state=1)
    fold = np.empty(30, int)
    for k, (_, tested) in enumerate(splitter.split(rows, y)):
        fold[tested] = k
    assert_array_equal(po.cross_validate(models, rows, y, folds=splitter).fold, fold)
    with pytest.raises(ValueError, match=r"tests row \d+ [02] times; give splits that test each row once"):
        po.cross_validate(models, rows, y, folds=ShuffleSplit(2, test_size=0.5, random_state=0))


@pytest.mark.parametrize(
    ("keyword", "advice"),
    [("cv", "use folds=…"), ("scoring", "leave it out, the result has log-loss"), ("fold", "did")],
)
def test_an_unknown_keyword_of_cross_validate_ends_in_a_sentence(keyword, advice):
    with pytest.raises(TypeError, match=f"cross_validate has no parameter '{keyword}'; {advice}"):
        po.cross_validate("nb", [[1.0], [2.0]], [0, 1], **{keyword: 3})


def test_comparisons_share_the_order_and_defaults_of_arguments():
    of_curves, of_folds = (inspect.signature(one).parameters for one in (po.compare, po.cross_validate))
    common = [name for name in of_curves if name in of_folds]
    expected = ["models", "X", "y", "categorical_features", "keep", "dates", "text", "random_state", "progress"]
    assert common == [name for name in of_folds if name in of_curves] == expected
    for name in common:
        assert of_curves[name].replace(annotation=None) == of_folds[name].replace(annotation=None)


@pytest.mark.parametrize("judge", [partial(po.compare, sizes=[20], repeats=1), partial(po.cross_validate, folds=2)])
def test_comparisons_take_one_model_and_any_kind_of_seeds(judge):
    def titles_of(models, **seed):
        found = judge(models, PENGUINS, "species", **seed)
        return (found.models if isinstance(found, Comparison) else found.table["model"]), found

    for one in ("nb", ["nb"], {"naive Bayes": po.NaiveBayes()}):
        assert list(titles_of(one)[0]) == ["naive Bayes"]
    for seed in (3, np.random.default_rng(3), np.random.RandomState(3)):
        assert list(titles_of(["nb", "lda"], random_state=seed)[0]) == ["naive Bayes", "LDA"]
    for table in (PENGUINS, np.zeros((4, 2)), [[1.0], [2.0]]):
        with pytest.raises(TypeError, match="give probabilistic classifiers, before the table"):
            judge(table, "species", ["nb"])


def test_titles():
    assert list(chosen_models(["nb", discriminative("logistic")], {})) == ["naive Bayes", "logistic regression"]
    assert list(chosen_models([discriminative(GaussianNB())], {})) == ["GaussianNB"]


def test_models_of_one_kind_are_named_by_differing_parameters():
    given = ["lda", po.NaiveBayes(), po.NaiveBayes(alpha=2.0), po.TreeAugmentedNaiveBayes()]
    named = ["LDA", "NaiveBayes()", "NaiveBayes(alpha=2.0)", "TreeAugmentedNaiveBayes"]
    assert list(chosen_models(given, {})) == named


def test_logistic_regression_reads_tf_idf_and_trees_omit_text():
    rng = np.random.default_rng(0)
    words = np.array([f"word{j}" for j in range(40)])
    y = np.array(["ham", "spam"])[np.arange(90) % 2]
    shares = rng.dirichlet(np.full(40, 0.3), 2)
    texts = [" ".join(rng.choice(words, 8, p=shares[i % 2])) for i in range(90)]
    frame = pl.DataFrame({"message": texts, "hour": rng.normal(size=90)})
    model = discriminative("logistic").fit(frame, y)
    features = hstack(
        [StandardScaler().fit_transform(frame.select("hour").to_numpy()), TfidfVectorizer().fit_transform(texts)]
    ).tocsr()
    theirs = LogisticRegression(max_iter=1000).fit(features, y)
    assert_allclose(model.predict_proba(frame), theirs.predict_proba(features), rtol=1e-6)
    assert model.predict_proba(frame[:1].with_columns(message=pl.lit(None, pl.String))).shape == (1, 2)

    result = po.compare(["nb", "logistic", "boosting"], frame, y, sizes=[12, 60], repeats=1, random_state=0)
    best = dict(result.summary.filter(n_rows=60).select("model", "accuracy").iter_rows())
    assert best["naive Bayes"] > 0.8
    assert best["logistic regression"] > 0.8
    assert best["gradient boosting"] < 0.75
    assert set(result.notes["model"]) == {"gradient boosting"}
    assert "reads no text: it leaves out column 'message'" in result.notes["message"][0]

    only = frame.select("message")
    judged = po.cross_validate(["nb", "logistic"], only, y, text={"message": {"ngram_range": (1, 2)}}).table
    assert (judged["accuracy"] > 0.8).all()
    with pytest.raises(ValueError, match="'random forest' reads no text, and there is no other column; leave it out"):
        po.cross_validate(["random forest"], only, y)


class _Undecided(GaussianNB):
    """A classifier without a posterior for rows above a number."""

    def predict_proba(self, X):
        return np.where(X.to_numpy()[:, :1] > 2.0, np.nan, super().predict_proba(X))


def test_a_row_impossible_in_a_refit_gets_the_class_frequencies():
    rng = np.random.default_rng(0)
    X, y = pl.DataFrame({"x": [*rng.normal(size=29), 9.0]}), np.repeat(["a", "b"], [20, 10])
    found = po.cross_validate({"one": _Undecided()}, X, y, folds=3)
    others = y[found.fold != found.fold[-1]]
    assert_allclose(found.posteriors["one"][-1], [np.mean(others == "a"), np.mean(others == "b")])


def test_a_random_forest_names_a_number_beyond_its_32_bits():
    X = pl.DataFrame({"x": [0.0, 1.0, 2.0, 1e39] * 5})
    with pytest.raises(ValueError, match="column 'x' holds 1e\\+39 in row 3, beyond"):
        po.comparison.discriminative("forest").fit(X, [0, 1] * 10)
