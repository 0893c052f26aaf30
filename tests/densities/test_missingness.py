"""Informative missingness: a factor p(m_j | y) per column."""

import itertools
import json
import warnings

import numpy as np
import polars as pl
import pytest
import scipy.integrate
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as po
from posteriori.densities import Missingness
from posteriori.learning.importance import mutual_information
from posteriori.model import log_marginal, log_marginal_of_codes
from posteriori.model_selection import out_of_fold
from posteriori.plotting.reading import Feature
from posteriori.statistics import PresenceCounts
from posteriori.tables import Assignment, Codes, Numbers
from posteriori.tables.batch import Mixed
from tests.cli.command_line import CommandLine

INFORMATIVE = {
    "naive": po.NaiveBayes(missing="informative", distributions={"k": "poisson", "z": "binned"}, bins=4),
    "lda": po.GaussianDiscriminant(missing="informative"),
    "qda": po.GaussianDiscriminant(missing="informative", pooling="per_class"),
    "tree": po.TreeAugmentedNaiveBayes(missing="informative", bins=4),
    "tree gaussian": po.TreeAugmentedNaiveBayes(missing="informative", bins=None),
    "forest": po.classifiers.ChowLiuClassifier(missing="informative", bins=4),
}
every_model = pytest.mark.parametrize("name", INFORMATIVE)


def like(model, **parameters):
    return clone(model).set_params(**parameters)


def at_random(model):
    return like(model, missing="pairs" if "penalty" in model.get_params() else "at_random")


def table(n=300, seed=0, wanting=1.0):
    """Return a mixed table whose cells are missing by class, as often as its labels and `wanting` say."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3

    def some(cells, *share):
        gaps = rng.random(n) < wanting * np.array(share)[y]
        return [None if gap else cell for gap, cell in zip(gaps, cells, strict=True)]

    frame = pl.DataFrame(
        {
            "sky": some(rng.choice(["clear", "clouds", "fog"], n).tolist(), 0.1, 0.5, 0.2),
            "x": some(rng.normal(y, 1.0).tolist(), 0.6, 0.1, 0.2),
            "z": some(rng.normal(1e6 - y, 1.0).tolist(), 0.0, 0.0, 0.0),
            "k": some(rng.poisson(3 + y, n).tolist(), 0.3, 0.3, 0.3),
        }
    )
    return frame, y


# The model ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [po.NaiveBayes(missing="informative"), INFORMATIVE["tree"], INFORMATIVE["forest"]])
@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_probabilities_of_rows_and_their_gaps_sum_to_one(model, alpha):
    rng = np.random.default_rng(1)
    columns = {"a": ["u", "v", None], "b": [True, False, None], "c": ["p", "q", "r", None]}
    frame = pl.DataFrame({name: [cells[i] for i in rng.integers(0, len(cells), 60)] for name, cells in columns.items()})
    model = like(model, alpha=alpha).fit(frame, rng.integers(0, 2, 60))
    rows = pl.DataFrame(list(itertools.product(*columns.values())), schema=frame.schema, orient="row")
    assert_allclose(np.exp(model.predict_joint_log_proba(rows)).sum(axis=0), model.class_prior_, rtol=1e-12)
    assert_allclose(np.exp(model.score_samples(rows)).sum(), 1.0, rtol=1e-12)


@given(st.integers(0, 10**6))
def test_without_smoothing_missing_is_one_more_category(seed):
    rng = np.random.default_rng(seed)
    y = np.arange(60) % 3
    gaps = rng.random((60, 3)) < rng.random((3, 3))[y]  # often every cell of a class, or none
    codes = np.where(gaps, None, rng.choice(["u", "v", "w"], (60, 3)))
    names = ["a", "b", "c"]
    told = pl.DataFrame(
        {name: codes[:, j].tolist() for j, name in enumerate(names)}, schema=dict.fromkeys(names, pl.String)
    )
    to_observed_codes = told.fill_null("nothing")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of rows that no class can produce, or empty columns
        found = po.NaiveBayes(missing="informative", alpha=0.0).fit(told, y).predict_joint_log_proba(told)
        expected = po.NaiveBayes(alpha=0.0).fit(to_observed_codes, y).predict_joint_log_proba(to_observed_codes)
    assert_allclose(found, expected, atol=1e-9)


def test_the_factor_is_the_smoothed_share():
    frame, y = table()
    model = po.NaiveBayes(missing="informative", alpha=0.7).fit(frame, y)
    plain = po.NaiveBayes(alpha=0.7).fit(frame, y)
    gaps = frame.select(pl.all().is_null()).to_numpy()
    gain = model.predict_joint_log_proba(frame) - plain.predict_joint_log_proba(frame)
    expected = np.zeros((len(y), 3))
    for j, c in itertools.product((0, 1, 3), range(3)):
        share = (gaps[y == c, j].sum() + 0.7) / ((y == c).sum() + 1.4)
        expected[:, c] += np.where(gaps[:, j], np.log(share), np.log1p(-share))
    assert_allclose(gain, expected, atol=1e-9)
    assert model.n_parameters_ == plain.n_parameters_ + 9


@every_model
def test_with_nothing_missing_it_changes_nothing(name):
    frame, y = table(wanting=0.0)
    gaps, _ = table(seed=1)
    plain, told = at_random(INFORMATIVE[name]).fit(frame, y), like(INFORMATIVE[name]).fit(frame, y)
    assert_array_equal(told.predict_joint_log_proba(gaps), plain.predict_joint_log_proba(gaps))
    assert told.n_parameters_ == plain.n_parameters_


@every_model
def test_a_column_that_is_always_missing_has_no_factor(name):
    frame, y = table()
    frame = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias("void"))
    model = like(INFORMATIVE[name], **({"distributions": None} if name == "naive" else {}))
    with pytest.warns(UserWarning, match="'void'] has no cell|'void' has no cell"):
        told = model.fit(frame, y)
    assert_array_equal(told.explain(frame).log_factors[:, :, 4], 0.0)
    assert told.model_.parameters[-1].modelled_columns.tolist() == [True, True, False, True, False]


@every_model
def test_it_uses_what_the_gaps_tell(name):
    frame, y = table(900)
    plain, told = at_random(INFORMATIVE[name]).fit(frame, y), like(INFORMATIVE[name]).fit(frame, y)
    new, truth = table(900, seed=1)
    loss = [-model.predict_log_proba(new)[np.arange(900), truth].mean() for model in (plain, told)]
    assert loss[1] < loss[0] - 0.1


@every_model
def test_explanations_hold_the_factor_within_that_of_the_column(name):
    frame, y = table()
    told = like(INFORMATIVE[name]).fit(frame, y)
    explanation = told.explain(frame)
    assert_allclose(explanation.log_joint, told.predict_joint_log_proba(frame), atol=1e-9)
    gap = np.flatnonzero(frame["x"].is_null().to_numpy())
    factors = explanation.log_factors[gap, :, 1]
    assert_allclose(factors, np.broadcast_to(told.model_.parameters[-1].log_missing[:, 1], factors.shape))


# Learning ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["naive", "tree gaussian"])
@settings(max_examples=5)
@given(st.integers(0, 299))
def test_pieces_add_up(name, cut):
    frame, y = table()
    model = like(INFORMATIVE[name], **({"distributions": {"k": "poisson"}} if name == "naive" else {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of columns of which a first piece has no cell
        whole, parts = like(model).fit(frame, y), like(model)
        for piece in (slice(0, cut), slice(cut, None)):
            if len(y[piece]):
                parts.partial_fit(frame[piece], y[piece], classes=[0, 1, 2])
    assert_allclose(parts.predict_joint_log_proba(frame), whole.predict_joint_log_proba(frame), atol=1e-8)


def test_a_column_may_begin_to_be_missing_and_a_class_to_appear():
    frame, y = table()
    full = ~frame.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy()
    first = full & (y < 2)
    parts = po.NaiveBayes(missing="informative").partial_fit(frame.filter(first), y[first])
    assert not parts.model_.parameters[-1].modelled_columns.any()
    parts.partial_fit(frame.filter(~first), y[~first])
    whole = po.NaiveBayes(missing="informative").fit(frame, y)
    assert_allclose(parts.predict_joint_log_proba(frame), whole.predict_joint_log_proba(frame), atol=1e-8)


@pytest.mark.parametrize("name", ["naive", "lda", "qda"])
def test_rows_without_label_teach_it(name):
    frame, y = table(150)
    some = np.where(np.arange(len(y)) < 60, y, np.nan)
    rough = {"distributions": {"x": po.Gaussian(0.0), "z": po.Gaussian(0.0), "k": po.Poisson(0.0)}}
    model = like(INFORMATIVE[name], labels__unlabelled="learn", alpha=0.0, em__tol=1e-6, em__max_iter=1000)
    model.set_params(**(rough if name == "naive" else {})).fit(frame, some)
    known = ~np.isnan(some)
    labelled = model.predict_joint_log_proba(frame)[known, y[known]].sum()
    assert_allclose(model.log_likelihood_trace_[-1], labelled + model.score_samples(frame)[~known].sum(), rtol=1e-4)
    assert np.diff(model.log_likelihood_trace_).min() > -1e-6
    alone = like(model, labels__unlabelled="error").fit(frame.filter(known), y[known])
    assert not np.allclose(alone.model_.parameters[-1].log_missing, model.model_.parameters[-1].log_missing)


@pytest.mark.parametrize("name", ["tree", "tree gaussian", "forest"])
def test_trees_learn_it_of_rows_without_label_too(name):
    frame, y = table(150)
    model = like(INFORMATIVE[name], labels__unlabelled="learn").fit(frame, np.where(np.arange(len(y)) < 60, y, np.nan))
    shares = model.statistics_.blocks[-1]
    assert_allclose(shares.table.sum(), frame.width * len(frame))


@pytest.mark.parametrize("name", ["naive", "lda", "tree gaussian"])
def test_cross_validation_is_refitting(name):
    frame, y = table(120)
    model = like(INFORMATIVE[name], **({"distributions": None} if name == "naive" else {}))
    model.set_params(em__tol=1e-11, em__max_iter=5000)  # EM starts elsewhere than a refit
    result = out_of_fold(like(model), frame, y, folds=3)
    for k in range(3):
        held_out = result.fold == k
        refit = like(model).fit(frame.filter(~held_out), y[~held_out])
        assert_allclose(result.posterior[held_out], refit.predict_proba(frame.filter(held_out)), atol=1e-4)


SPARSE = {"check_estimator_sparse_tag": "sparse rows are counts, and the tag would also promise negative cells"}


@pytest.mark.filterwarnings("ignore:the covariance is singular")  # the checks' own rows are few
@parametrize_with_checks(
    [po.NaiveBayes(missing="informative"), INFORMATIVE["lda"], INFORMATIVE["tree"]],
    expected_failed_checks=lambda estimator: SPARSE if isinstance(estimator, po.NaiveBayes) else {},
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_what_it_is_called_is_checked():
    frame, y = table(30)
    for model in (po.NaiveBayes(missing="pairs"), po.TreeAugmentedNaiveBayes(missing="at_random")):
        with pytest.raises(ValueError, match="The 'missing' parameter"):
            model.fit(frame, y)


# What is done with the model ---------------------------------------------------------------------


@every_model
def test_drawing_and_learning_gives_the_shares_back(name):
    frame, y = table()
    told = like(INFORMATIVE[name]).fit(frame, y)
    X, drawn = told.sample(20_000, random_state=0)
    share = np.exp(told.model_.parameters[-1].log_missing)
    gaps = X.select(pl.all().is_null()).to_numpy()
    for c in range(3):
        assert_allclose(gaps[drawn == c].mean(axis=0), np.where([1, 1, 0, 1], share[c], 0.0), atol=0.02)
    again = like(INFORMATIVE[name]).fit(X, drawn)
    assert_allclose(np.exp(again.model_.parameters[-1].log_missing), share, atol=0.02)


def test_every_kind_of_table_takes_gaps(constructor):
    cells = {
        "flag": [True, None, False, True, None, False],
        "word": ["u", "v", None, "u", "v", None],
        "number": [1.5, None, 2.0, 0.5, None, 1.0],
        "count": [1, 2, 3, None, 4, None],
        "full": [1, 2, 3, 4, 5, 6],
    }
    X = constructor(cells)
    model = po.NaiveBayes(missing="informative", distributions={3: "poisson"})
    drawn, _ = model.fit(X, [0, 1, 0, 1, 0, 1]).sample(200, random_state=0)
    assert type(drawn) is type(X)
    again = po.NaiveBayes(missing="informative", distributions={3: "poisson"}).fit(drawn, [0, 1] * 100)
    gaps = again.statistics_.blocks[-1].table[:, ::2].sum(axis=0)
    assert (gaps[:4] > 20).all()
    assert gaps[4] == 0
    kinds = [column.kind for column in again.model_.schema.columns]
    assert kinds == [column.kind for column in model.model_.schema.columns]
    assert np.isfinite(model.score_samples(drawn)).all()


@every_model
def test_a_model_file_gives_it_back(name, tmp_path):
    frame, y = table()
    told = like(INFORMATIVE[name]).fit(frame, y)
    po.save(told, tmp_path / "m.posteriori")
    again = po.load(tmp_path / "m.posteriori")
    assert_array_equal(again.predict_joint_log_proba(frame), told.predict_joint_log_proba(frame))
    assert again.missing == "informative"


@every_model
def test_a_column_alone_is_drawn_as_if_present(name):
    frame, y = table()
    told, plain = like(INFORMATIVE[name]).fit(frame, y), at_random(INFORMATIVE[name]).fit(frame, y)
    cells = np.linspace(-3, 3, 50)
    assert_allclose(log_marginal(told.model_, 1, cells), log_marginal(plain.model_, 1, cells), atol=1e-6)
    assert_allclose(np.exp(log_marginal_of_codes(told.model_, 0)).sum(axis=0), 1.0)
    assert_allclose(mutual_information(told.model_), mutual_information(plain.model_), atol=1e-6)
    assert not np.isnan(Feature.of(told, "x").sample(np.zeros(100, int))).any()


def test_of_an_unknown_column_nothing_is_heeded():
    frame, y = table()
    told, plain = (po.NaiveBayes(missing=how).fit(frame, y) for how in ("informative", "at_random"))
    heard = told._source(frame).map(told.model_.ignore_missingness_except([1]).log_joint)
    gap = frame["x"].is_null().to_numpy()[:, np.newaxis]
    shares = told.model_.parameters[-1]
    expected = np.where(gap, shares.log_missing[:, 1], shares.log_present[:, 1])
    assert_allclose(heard - plain.predict_joint_log_proba(frame), expected, atol=1e-9)


def test_the_density_of_a_number_and_its_gap_integrate_to_one():
    frame, y = table()
    told = po.NaiveBayes(missing="informative").fit(frame.select("x").to_numpy(), y)

    def joint(x):
        return np.exp(told.predict_joint_log_proba([[x]]))[0]

    present = scipy.integrate.quad_vec(joint, -20, 20, epsrel=1e-8)[0]
    assert_allclose(present + joint(None), told.class_prior_, rtol=1e-6)


def test_linear_and_quadratic_forms_are_of_complete_rows():
    frame, y = table()
    numbers = frame.select("x", "z", "k")
    complete = numbers.drop_nulls()
    for pooling in ("pooled", "per_class"):
        model = po.GaussianDiscriminant(missing="informative", pooling=pooling).fit(numbers, y)
        joint = model.predict_joint_log_proba(complete)
        assert_allclose(model.quadratic_form().scores(complete), joint, atol=1e-2)  # at 1e6 a square has few digits
    model = po.GaussianDiscriminant(missing="informative").fit(numbers.drop("z"), y)
    rows = complete.drop("z")
    posterior = model.predict_log_proba(rows)
    linear = rows.to_numpy() @ model.coef_.T + model.intercept_
    assert_allclose(linear - linear[:, :1], posterior - posterior[:, :1], atol=1e-9)
    form = po.explain.linear_form(model)
    assert_allclose(form.bias, model.intercept_)


def test_an_unsmoothed_class_without_rows_has_the_shares_of_all():
    codes = np.array([[0], [1], [1], [0], [1]], np.uint8)
    tile = Mixed(Numbers(np.empty((5, 0))), Codes(codes, (1,)), (False,))
    density = Missingness(0.0)
    labels = Assignment(np.array([0, 0, 0, 2, 2], np.int32), np.ones(5), 3)
    parameters = density.estimate(PresenceCounts.of(tile, labels))
    assert_allclose(np.exp(parameters.log_missing[:, 0]), [1 / 3, 2 / 5, 1 / 2])
    assert_allclose(
        density.log_density(parameters, tile), density.log_factors(parameters, tile).sum(axis=2), rtol=1e-12
    )


# The command line --------------------------------------------------------------------------------


COMMAND_LINE = CommandLine(replaces=True)
run = COMMAND_LINE.run


def test_the_command_line_learns_and_shows_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame, y = table()
    frame.with_columns(pl.Series("y", y).cast(pl.String)).write_csv("rows.csv")
    code, out, err = run("fit", "rows.csv", "--target", "y", "--set", "missing=informative", "--model", "nb", "--json")
    assert code == 0, err
    assert json.loads(out)["output"] == "rows.posteriori"
    told = json.loads(run("show", "rows.posteriori", "--json")[1])
    shares = {column["name"]: column.get("p_missing") for column in told["columns"]}
    assert shares["z"] is None
    assert_allclose(shares["x"], [0.6, 0.1, 0.2], atol=0.1)
    code, out, err = run("show", "rows.posteriori")
    assert code == 0, err
    assert "p(missing | class)" in out
    assert run("fit", "rows.csv", "--target", "y", "--set", "missing=informative", "--model", "aode")[0] == 0
    assert po.load("rows.posteriori").missing == "informative"
