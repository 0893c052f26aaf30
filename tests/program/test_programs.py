"""A model as functions of arrays says what `predict_log_proba` says: run by NumPy, and by onnxruntime as a graph."""

import json
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import posteriori as po
from posteriori.cli import main
from posteriori.program.cells import ArrayCells
from posteriori.program.model import log_posterior
from posteriori.registry import COMPARED_OF_NUMBERS, MODELS, find_model
from tests.javascript.engines import in_node
from tests.sql.test_to_sql import DATABASES, FEATURES, PATTERNS, PENGUINS, in_every_pattern, mixed_rows, with_holes
from tests.sql.test_to_sql import MODELS as OTHERS

COUNTS = ("poisson", "rate", "multinomial", "scaled", "complement", "presence", "compound")


def by_numpy(model, frame):
    """Return log p(y | x) of the program of a model, (n, C)."""
    posterior = model.fitted_.posterior
    return model._source(frame).map(lambda batch: log_posterior(posterior, ArrayCells.of(batch)))


def by_onnxruntime(model, frame):
    """Return log p(y | x) of the graph of a model, (n, C), after its check."""
    onnx = pytest.importorskip("onnx", reason="onnx is absent: pip install -e '.[onnx]'")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is absent: pip install -e '.[onnx]'")
    graph = model.to_onnx()
    onnx.checker.check_model(graph, full_check=True)
    session = runtime.InferenceSession(graph.SerializeToString())
    label, probability = session.run(None, onnx_cells(session, frame))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = model.predict(frame)
    two = np.sort(np.nan_to_num(probability, nan=-1.0), axis=1)
    clear = two[:, -1] - two[:, -2] > 1e-9 if two.shape[1] > 1 else slice(None)
    np.testing.assert_array_equal(label[clear], predicted[clear])
    with np.errstate(divide="ignore"):
        return np.log(probability)


def onnx_cells(session, frame):
    """Return the columns of a frame as the inputs of a session take them: NaN and "" where missing."""
    cells = {}
    for one in session.get_inputs():
        column = frame[one.name] if one.name in frame.columns else pl.Series([None] * frame.height, dtype=pl.Float64)
        if one.type == "tensor(int64)":
            unit = pl.Duration("us") if column.dtype in (pl.Time, pl.Duration) else pl.Datetime("us")
            cells[one.name] = column.cast(unit).cast(pl.Int64).fill_null(-(2**63)).to_numpy()
        elif one.type == "tensor(double)":
            cells[one.name] = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
        else:
            texts = column.cast(pl.String).fill_null("").to_list()
            cells[one.name] = np.array(texts, dtype=object)
    return cells


def by_database(name):
    """Return the function that scores rows in a database."""

    def scored(model, frame):
        numbered = frame.with_row_index("the row").with_columns(pl.col("the row").cast(pl.Int64))
        out = DATABASES[name](model.to_sql(dialect=name, columns=["the row"]), numbered).sort("the row")
        return out.select(pl.col("^log_p_.*$").cast(pl.Float64)).to_numpy()

    return scored


def by_polars(model, frame):
    """Return log p(y | x) of the expression of a model in a streamed query, (n, C)."""
    scored = frame.lazy().select(po.to_polars(model).alias("scored")).collect(engine="streaming")
    with np.errstate(divide="ignore"):
        return np.log(scored.unnest("scored").select("^p_.*$").to_numpy())


def by_node(model, frame):
    """Return log p(y | x) of the evaluator in JavaScript, (n, C)."""
    exported = json.loads(po.javascript.to_javascript(model))
    script = """
const model = load(JSON.stringify(given.file));
const result = given.rows.map((row) => Array.from(model.logPosterior(row), (x) => Number.isFinite(x) ? x : String(x)));
"""
    with tempfile.TemporaryDirectory() as folder:
        rows = in_node(script, {"file": exported, "rows": frame.rows(named=True)}, Path(folder))
    return np.array([[float(str(x).replace("Infinity", "inf")) for x in row] for row in rows])


ENGINES = {"numpy": by_numpy, "onnxruntime": by_onnxruntime}
EVERY = ENGINES | {
    "duckdb": by_database("duckdb"),
    "sqlite": by_database("sqlite"),
    "polars": by_polars,
    "node": by_node,
}


def require_agreement(model, frame, engine):
    """An engine gives p(y | x) of every row of a frame."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unseen categories and impossible rows
        wanted, found = model.predict_log_proba(frame), EVERY[engine](model, frame)
    np.testing.assert_allclose(np.exp(found), np.exp(wanted), rtol=1e-9, atol=1e-12)
    if engine == "numpy":
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


def strange(frame, rng):
    """Return rows with more gaps, unseen categories, and numbers far from those of training."""
    far = with_holes(frame, 0.4, rng).with_columns(
        island=pl.when(pl.Series(rng.random(frame.height) < 0.2)).then(pl.lit("Elsewhere")).otherwise("island"),
        body_mass_g=pl.col("body_mass_g") * rng.choice([1, 1, 1, 30], frame.height),
    )
    return pl.concat([frame, far.with_columns(pl.col("body_mass_g").cast(frame["body_mass_g"].dtype))])


CLASSIFIERS = [
    name
    for name, spec in MODELS.items()
    if name not in COMPARED_OF_NUMBERS and spec.estimator.startswith("posteriori.") and not name.startswith(COUNTS)
]


@cache  # the engines share it
def fitted(name):
    model = find_model(name).make()
    if not hasattr(model, "to_onnx"):
        pytest.skip("it predicts no class")
    return model.fit(FEATURES, PENGUINS["species"])


@pytest.mark.parametrize("engine", EVERY)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_engine_gives_the_posterior_of_python(name, engine):
    model = fitted(name)
    require_agreement(model, strange(FEATURES, np.random.default_rng(0)).gather_every(2), engine)


@pytest.mark.parametrize("name", OTHERS)
def test_models_with_other_parameters_agree_with_python(name, engine):
    model, rows = OTHERS[name]
    model.fit(rows, "species")
    require_agreement(model, with_holes(FEATURES, 0.4, np.random.default_rng(1)).gather_every(2), engine)


@pytest.mark.parametrize("name", PATTERNS)
def test_every_pattern_of_missing_cells_is_integrated_out(name, engine):
    model, numbers, categories = PATTERNS[name]
    frame, y = mixed_rows(np.random.default_rng(3), 120, numbers, categories, 3, offset=1e9)
    model.fit(frame, y)
    require_agreement(model, in_every_pattern(frame), engine)


@pytest.mark.parametrize("density", COUNTS)
def test_counts_agree_with_python(density, engine):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 90)
    frame = pl.DataFrame({f"w{j}": rng.poisson(1 + y * j).astype(float) for j in range(4)})
    distributions = dict.fromkeys(frame.columns, density)
    if density == "rate":
        distributions = dict.fromkeys(frame.columns, po.PoissonRate(exposure="hours")) | {"hours": "gaussian"}
        frame = frame.with_columns(hours=pl.Series(rng.uniform(1.0, 3.0, 90)))
    model = po.NaiveBayes(distributions=distributions).fit(frame, y)
    require_agreement(model, with_holes(frame, 0.3, rng), engine)


@pytest.mark.parametrize("estimator", [po.TreeAugmentedNaiveBayes, po.KDependenceBayes, po.AveragedOneDependence])
def test_groups_of_categories_agree_with_python(estimator, engine):
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, 300)
    city = (rng.integers(0, 40, 300) + 40 * (rng.random(300) < 0.3 + 0.4 * y)).astype(str)
    kind = np.array(list("abc"))[(y + rng.integers(0, 2, 300)) % 3]
    frame = pl.DataFrame({"city": city, "kind": kind, "size": rng.normal(size=300) + y})
    model = estimator().fit(frame, y)
    require_agreement(model, pl.concat([frame.head(50), with_holes(frame.tail(80), 0.4, rng)]), engine)


@settings(max_examples=6)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(1, 4)),
    alpha=st.sampled_from([0.0, 1.0]),
    kind=st.sampled_from(["bayes", "binned", "tan", "forest", "kdb", "aode", "pool"]),
)
def test_programs_agree_on_tables_of_any_shape(seed, shape, alpha, kind):
    numbers, categories, n_classes = shape
    rng = np.random.default_rng(seed)
    frame, y = mixed_rows(rng, 40, numbers, max(categories, 1 - numbers), n_classes)
    frame = with_holes(frame, 0.1, rng)
    y = np.where(np.arange(40) < n_classes, np.arange(40), y)
    model = {
        "bayes": lambda: po.NaiveBayes(alpha=alpha),
        "binned": lambda: po.NaiveBayes(distributions=po.Binned(4), alpha=alpha) if not categories else po.NaiveBayes(),
        "tan": lambda: po.TreeAugmentedNaiveBayes(bins=3, alpha=alpha),
        "forest": lambda: po.GenerativeForest(5),
        "kdb": lambda: po.KDependenceBayes(bins=3, alpha=alpha),
        "aode": lambda: po.AveragedOneDependence(bins=3, alpha=alpha),
        "pool": lambda: po.GenerativeClassifier([po.NaiveBayes(), po.TreeAugmentedNaiveBayes()], folds=2),
    }[kind]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a table with one class, for example
        model.fit(frame, y)
    require_agreement(model, with_holes(frame, 0.5, rng), "numpy")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of packages that read a graph
def test_a_density_of_ones_own_is_in_a_graph_by_its_program():
    from examples.extending.density import Exponential

    rng = np.random.default_rng(0)
    frame, y = pl.DataFrame({"wait": rng.exponential(size=60)}), rng.integers(0, 2, 60)
    model = po.NaiveBayes(distributions={"wait": Exponential()}).fit(frame, y)
    for engine in ENGINES:
        require_agreement(model, with_holes(frame, 0.3, rng), engine)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (
            pl.Series("when", ["2024-01-01", "2024-05-01", "2024-02-02", "2025-01-01"]).str.to_datetime(
                time_zone="Europe/Berlin"
            ),
            "the clock of Europe/Berlin",
        ),
        (pl.Series("text", ["good day", "bad day", "good night", "bad night"]), "text"),
        (pl.Series("id", [2**60, 2**60 + 2, 2**60, 2**60 + 2]), "2⁵³"),
    ],
)
def test_what_a_graph_cannot_read_is_named(column, words):
    distributions = {"id": "categorical"} if column.name == "id" else None
    more = {"columns": po.Columns(text=["text"])} if column.name == "text" else {}
    X = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], column.name: column})
    model = po.NaiveBayes(distributions=distributions, **more).fit(X, ["u", "v", "u", "v"])
    with pytest.raises(ValueError, match=f"{column.name}.*{words}"):
        model.to_onnx()


ONE = pl.DataFrame({"x": np.arange(40.0) % 7, "z": np.arange(40.0) % 5, "k": list("abcd") * 10})
SAME = pl.DataFrame({"c": np.ones(40), "s": ["same"] * 40})


@pytest.mark.filterwarnings("ignore::UserWarning")  # of one class, and of constant columns
@pytest.mark.parametrize("engine", ["numpy", "onnxruntime", "duckdb"])
@pytest.mark.parametrize(
    ("model", "frame", "n_classes"),
    [
        (po.GaussianDiscriminant(), ONE, 1),
        (po.KDependenceBayes(), ONE, 1),
        (po.GenerativeForest(20, splits="mixed"), ONE, 1),
        (po.GenerativeClassifier([po.NaiveBayes(), po.KDependenceBayes()], folds=2), SAME, 2),
        (po.GenerativeClassifier({"a": po.KDependenceBayes(), "b": po.KDependenceBayes()}, folds=2), ONE, 2),
    ],
    ids=["discriminant", "kdb", "forest", "constant", "twins"],
)
def test_one_class_constant_columns_and_equal_members_agree(model, frame, n_classes, engine):
    y = np.array(["u", "v"])[np.arange(40) % n_classes]
    model.fit(frame, y)
    require_agreement(model, with_holes(frame, 0.3, np.random.default_rng(0)), engine)


def test_what_has_no_graph_names_what_does_the_same():
    for model in (po.GenerativeRegressor(), po.JointModel(), po.GenerativeImputer()):
        with pytest.raises(AttributeError, match=r"no method 'to_onnx'; .*po\.to_polars"):
            model.to_onnx()


def test_names_that_a_graph_or_a_database_has_not_are_refused():
    y = np.arange(40) % 2
    with pytest.raises(ValueError, match="a column is named 'label'"):
        po.NaiveBayes().fit(pl.DataFrame({"label": np.arange(40.0)}), y).to_onnx()
    model = po.NaiveBayes().fit(ONE.rename({"z": "X"}), y)
    with pytest.raises(ValueError, match="'x' and 'X' are one name in duckdb"):
        model.to_sql()
    assert model.to_sql(dialect="postgres")


@pytest.mark.parametrize("kind", ["date", "datetime", "time", "duration"])
def test_parts_of_times_agree(kind):
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 200)
    hours = rng.integers(-700_000, 300_000, 200) + 40_000 * y  # from 1890 on
    since = pl.Series("when", hours * 3_600_000_000 + rng.integers(0, 3_600_000_000, 200))
    day = 86_400_000_000
    times = {
        "date": since.cast(pl.Datetime("us")).cast(pl.Date),
        "datetime": since.cast(pl.Datetime("us")),
        "time": (since % day * 1000).cast(pl.Time),
        "duration": since.cast(pl.Duration("us")),
    }[kind]
    frame = pl.DataFrame({"when": times, "x": rng.normal(size=200) + y})
    model = po.NaiveBayes().fit(frame, y)
    require_agreement(model, with_holes(frame, 0.3, rng), "onnxruntime")


def test_truth_values_and_numbers_may_be_categories():
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"is": rng.random(60) < 0.5, "code": rng.choice([1, 5, 9], 60)})
    y = rng.integers(0, 2, 60).astype(bool)
    model = po.NaiveBayes(distributions={"code": "categorical"}).fit(frame, y)
    require_agreement(model, with_holes(frame, 0.3, rng), "onnxruntime")


def test_the_command_line_writes_a_graph(tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is absent: pip install -e '.[onnx]'")
    model, graph = tmp_path / "m.posteriori", tmp_path / "m.onnx"
    po.save(po.NaiveBayes().fit(FEATURES, PENGUINS["species"]), model)
    assert main(["export", str(model), "--to", "onnx", "-o", str(graph)]) == 0
    assert [one.name for one in onnx.load(graph).graph.input] == FEATURES.columns
    assert main(["export", str(model), "--to", "onnx"]) == 2
