"""`Scorer` gives the numbers of `predict_proba`, and dicts are rows wherever rows are predicted."""

import ast
import functools
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import posteriori as po
from posteriori import persistence
from posteriori.model_files import write_file
from posteriori.scoring.strangeness import Strangeness

_CELLS = {
    "a": st.one_of(st.none(), st.floats(-4, 4), st.integers(-3, 3), st.just(float("nan"))),
    "b": st.one_of(st.none(), st.floats(-4, 4).map(np.float64)),
    "c": st.sampled_from([None, "u", "v", "w", "unseen"]),
    "d": st.sampled_from([None, True, False]),
}
ROWS = st.dictionaries(st.sampled_from(sorted(_CELLS)), st.none()).flatmap(
    lambda keys: st.fixed_dictionaries({key: _CELLS[key] for key in keys})
)
MODELS = {
    "nb": po.NaiveBayes(),
    "nb binned": po.NaiveBayes(distributions="binned", feature_weights="conditional"),
    "nb cells": po.NaiveBayes(distributions="binned", feature_weights="cells"),
    "nb informative": po.NaiveBayes(missing="informative"),
    "nb parts": po.NaiveBayes(em=po.EM(components_per_class=2), random_state=0),
    "gda": po.GaussianDiscriminant(),
    "tan": po.TreeAugmentedNaiveBayes(),
    "chow-liu": po.classifiers.ChowLiuClassifier(),
    "kdb": po.KDependenceBayes(),
    "aode": po.AveragedOneDependence(),
    "joint": po.classifiers.FullJointClassifier(),
    "pool": po.GenerativeClassifier(["nb", "lda", "tan", "kdb"]),
    "pool of cells": po.GenerativeClassifier(
        {"tables": po.NaiveBayes(distributions="binned", feature_weights="cells"), "tan": "tan"}
    ),
    "best": po.GenerativeClassifier(["nb", "tan"], pool="best"),
}


def table(n=80):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, n)
    return pl.DataFrame(
        {
            "a": rng.normal(y, 1.0).round(2),
            "b": rng.normal(0.5 * y, 1.0).round(2),
            "c": np.array(["u", "v", "w"])[(y + (rng.random(n) < 0.4)) % 3],
            "d": rng.random(n) < 0.3 + 0.2 * y,
            "y": np.array(["k", "l", "m"])[y],
        }
    )


@functools.cache
def fitted(name):
    rows = table()
    if name == "joint":
        rows = rows.select("c", "d", "y")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MODELS[name].fit(rows, "y")


def quietly(function, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)


@pytest.mark.parametrize("name", MODELS)
@settings(suppress_health_check=list(HealthCheck))
@given(row=ROWS)
def test_the_scorer_gives_the_numbers_of_predict_proba(name, row):
    model = fitted(name)
    scorer = pickle.loads(pickle.dumps(model.scorer()))
    frame = pl.DataFrame({key: [row.get(key)] for key in model.schema_.names}, strict=False)
    expected = quietly(model.predict_proba, frame)[0]
    found = quietly(scorer, row)
    assert list(found) == model.classes_.tolist()
    np.testing.assert_allclose(list(found.values()), expected, rtol=1e-12, atol=1e-12)
    log_odds = np.array(list(quietly(scorer.log_odds, row).values()))
    np.testing.assert_allclose(1.0 / (1.0 + np.exp(-log_odds)), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(quietly(model.predict_proba, row), quietly(model.predict_proba, [row]))
    np.testing.assert_allclose(quietly(model.predict_proba, row)[0], expected, rtol=1e-12, atol=1e-12)


def test_dicts_are_rows_wherever_rows_are_predicted():
    rows = table()
    X = rows.drop("y").with_columns(pl.when(pl.col("a") > 1).then(None).otherwise(pl.col("a")).alias("a"))
    model = fitted("tan")
    for method in ("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "score_samples"):
        np.testing.assert_array_equal(getattr(model, method)(X.to_dicts()), getattr(model, method)(X))
    pool = fitted("pool")
    for method in ("predict", "predict_proba", "predict_log_proba", "score_samples"):
        np.testing.assert_array_equal(getattr(pool, method)(X.to_dicts()), getattr(pool, method)(X))
    np.testing.assert_array_equal(model.explain(X.to_dicts()).log_factors, model.explain(X).log_factors)
    mixture = po.MixtureModel(2, random_state=0).fit(X.select("a", "b"))
    np.testing.assert_array_equal(
        mixture.predict_proba(X.select("a", "b").to_dicts()), mixture.predict_proba(X.select("a", "b"))
    )


def test_an_absent_key_is_a_missing_cell():
    model = fitted("nb")
    nothing = {"a": None, "b": float("nan"), "c": None, "d": None}
    np.testing.assert_allclose(model.predict_proba({})[0], model.class_prior_)
    np.testing.assert_array_equal(model.predict_proba({}), model.predict_proba(nothing))


def test_one_warning_names_ignored_keys_but_not_the_target():
    model = fitted("nb")
    rows = [{"A": 1.0, "y": "k"}, {"A": 2.0, "zap": 3}]
    message = r"columns 'A', 'zap', which NaiveBayes was not trained on; ignored; is 'A' the column 'a'\?"
    with pytest.warns(UserWarning, match=message) as seen:
        found = model.predict_proba(rows)
    assert len(seen) == 1
    np.testing.assert_array_equal(found, model.predict_proba([{}, {}]))
    with pytest.warns(UserWarning, match="column 'A', which NaiveBayes was not trained on"):
        model.scorer()(rows[0])
    assert model.scorer()({"y": "k"}) == model.scorer()({})


def test_unseen_categories_warn_as_in_predict_proba():
    model = fitted("nb")
    with pytest.warns(UserWarning, match="unseen in training count as missing: 1 cell of column 'c'"):
        found = model.scorer()({"c": "unseen"})
    assert found == model.scorer()({})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"count": -1.0}, "column 'count' holds -1 in row 0, but its distribution is poisson"),
        ({"count": float("inf")}, "column 'count' holds inf in row 0"),
        ({"count": "many"}, "column 'count' was numeric in training but holds 'many' in row 0"),
        ({"count": 10**400}, "column 'count' holds an integer too large for a float"),
    ],
)
def test_the_scorer_refuses_what_predict_proba_refuses(row, message):
    model = po.NaiveBayes(distributions={"count": "poisson"}).fit(
        pl.DataFrame({"count": [0, 1, 4, 5], "y": ["k", "k", "l", "l"]}), "y"
    )
    for score in (model.scorer(), model.predict_proba):
        with pytest.raises(ValueError, match=message):
            score(row)


def test_a_cell_that_is_a_list_is_refused_by_name():
    with pytest.raises(TypeError, match="column 'c' holds a list"):
        fitted("nb").predict_proba({"c": ["u", "v"]})


def test_an_impossible_row_is_nan_with_a_warning():
    model = po.NaiveBayes(alpha=0.0).fit(pl.DataFrame({"u": ["p", "q"], "v": ["p", "q"], "y": ["k", "l"]}), "y")
    with pytest.warns(UserWarning, match="no class can produce the row"):
        found = model.scorer()({"u": "p", "v": "q"})
    assert np.isnan(list(found.values())).all()


def test_a_model_of_an_array_takes_the_names_of_its_columns():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = po.NaiveBayes().fit(X, np.arange(30) % 2)
    np.testing.assert_allclose(model.predict_proba({"x0": X[0, 0], "x1": X[0, 1]}), model.predict_proba(X[:1]))
    assert list(model.scorer()({"x0": 1.0})) == [0, 1]
    assert model.scorer().names == ("x0", "x1")


def test_the_scorer_of_a_mixture_gives_its_responsibilities(tmp_path):
    rows = pl.DataFrame({"u": [0.0, 0.5, 9.0, 9.5] * 5, "c": ["p", "p", "q", "r"] * 5})
    model = po.MixtureModel(2, random_state=0).fit(rows)
    po.save(model, tmp_path / "m.posteriori")
    for score in (pickle.loads(pickle.dumps(model.scorer())), po.scoring.load_scorer(tmp_path / "m.posteriori")):
        for row in ({"u": 0.2, "c": "p"}, {"u": 9.1}, {}):
            found = score(row)
            assert list(found) == [0, 1]
            np.testing.assert_allclose(list(found.values()), model.predict_proba(row)[0], rtol=1e-12)


def test_rows_that_are_not_all_dicts_are_refused():
    with pytest.raises(TypeError, match="row 1 of X is a list, and row 0 is a dict"):
        fitted("nb").predict([{}, [1, 2, "u", True]])
    with pytest.raises(TypeError, match="X is a list of dicts"):
        po.NaiveBayes().fit([{"a": 1.0}, {"a": 2.0}], ["k", "l"])


def network():
    net = po.BayesianNetwork([("rain", "wet"), ("sprinkler", "wet")])
    net.add_cpt("rain", [0.2, 0.8], states=["yes", "no"])
    net.add_cpt("sprinkler", [0.4, 0.6], states=[True, False])
    net.add_cpt("wet", [[[0.9, 0.1], [0.8, 0.2]], [[0.7, 0.3], [0.0, 1.0]]], states=["yes", "no"])
    return net.as_classifier("rain")


@pytest.mark.parametrize("row", [{}, {"wet": "yes"}, {"wet": None, "sprinkler": True}, {"rain": "no", "wet": "no"}])
def test_the_scorer_of_a_network_equals_predict_proba(row):
    classifier = network()
    frame = pl.DataFrame({key: [row.get(key)] for key in ("sprinkler", "wet")})
    found = pickle.loads(pickle.dumps(classifier.scorer()))(row)
    np.testing.assert_allclose(list(found.values()), classifier.predict_proba(frame)[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(classifier.predict_proba(row), classifier.predict_proba(frame))
    assert list(found) == ["yes", "no"]
    assert classifier.scorer().names == tuple(name for name in classifier.network_.variables if name != "rain")


def test_a_network_refuses_a_cell_that_is_no_state():
    with pytest.raises(ValueError, match="'damp', which is no state of 'wet'"):
        network().predict_proba({"wet": "damp"})


@pytest.mark.parametrize("name", ["nb parts", "tan", "nb binned", "pool"])
def test_a_scorer_from_a_file_is_that_of_the_model(name, tmp_path):
    model, path = fitted(name), tmp_path / "model.posteriori"
    po.save(model, path)
    loaded = po.scoring.load_scorer(path)
    for row in table().drop("y").head(5).to_dicts():
        assert loaded(row) == model.scorer()(row)


def test_a_file_of_a_network_has_no_scorer(tmp_path):
    path = tmp_path / "net.posteriori"
    po.save(network().network_, path)
    with pytest.raises(ValueError, match="holds a Bayesian network"):
        po.scoring.load_scorer(path)


def test_a_file_whose_classes_do_not_fit_is_refused(tmp_path):
    model, path = po.NaiveBayes().fit([["u"], ["v"], ["v"]], ["k", "l", "l"]), tmp_path / "model.posteriori"
    target = po.NaiveBayes().fit([["u"], ["v"], ["v"]], ["k", "l", "m"]).target_
    model.fitted_ = replace(model.fitted_, target=target)
    arrays = {}
    write_file(path, persistence._content_of(model, arrays), arrays, lambda *_: None)  # `save` would refuse it
    with pytest.raises(ValueError, match="the model has not one component or more for each class"):
        po.scoring.load_scorer(path)


_MINIMAL = """
import sys, warnings
for name in "numba llvmlite scipy sklearn polars narwhals joblib threadpoolctl typer rich pandas".split():
    sys.modules[name] = None  # as if it were not installed
warnings.simplefilter("ignore")
import posteriori as po
from posteriori.scoring.strangeness import Strangeness
for path in sys.argv[1:]:
    score = po.scoring.load_scorer(path)
    print([score(row) for row in ({"a": 1.0, "c": "u"}, {"b": -0.5, "c": "unseen", "d": True}, {})])
"""


def test_a_scorer_from_a_file_needs_numpy_and_safetensors_only(tmp_path):
    paths = [str(tmp_path / f"{name}.posteriori") for name in MODELS]
    for name, path in zip(MODELS, paths, strict=True):
        po.save(fitted(name), path)
    done = subprocess.run([sys.executable, "-c", _MINIMAL, *paths], capture_output=True, text=True, check=True)
    for name, line in zip(MODELS, done.stdout.splitlines(), strict=True):
        scorer = fitted(name).scorer()
        rows = ({"a": 1.0, "c": "u"}, {"b": -0.5, "c": "unseen", "d": True}, {})
        for found, row in zip(ast.literal_eval(line), rows, strict=True):
            assert found == pytest.approx(quietly(scorer, row), rel=1e-12, abs=1e-13), name


def test_strangeness_is_the_share_of_likelier_drawn_rows():
    """Rows of categories are equally probable often: only more probable ones count."""
    table = pl.DataFrame({"a": list("xxxy") * 10, "b": list("pppppqqq") * 5})
    posterior = po.NaiveBayes().fit(table, ["s", "t"] * 20)._posterior
    measured = Strangeness.of(posterior)
    log_density = measured.log_density(measured.drawn)
    expected = [(log_density > one + 1e-12).mean() for one in log_density[:50]]
    np.testing.assert_allclose(measured.ranks(measured.drawn, log_density)[:50], expected)
    assert 0.0 in expected


def test_a_scorer_is_shown_in_one_line_and_refuses_non_rows():
    score = po.NaiveBayes().fit([["u", 1.0], ["v", 2.5]], ["a", "b"]).scorer()
    assert repr(score) == "<Scorer: 2 columns, 2 classes>"
    for row in ([{"x0": "u"}], ["u", 1.0], None):
        with pytest.raises(TypeError, match="give one row as a dict from column name to cell"):
            score(row)
