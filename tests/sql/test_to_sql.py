"""A model as a SELECT: what it says in a database is what `predict_log_proba` says."""

import itertools
import sqlite3
import warnings

import duckdb
import numpy as np
import polars as pl
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

import posteriori as po
from posteriori.cli import main
from posteriori.datasets import load_penguins
from posteriori.densities.categorical import Binned
from posteriori.sql import dialects
from posteriori.sql import translation as sizes

DEPTH = {"most": 1000}  # levels of an expression, in both databases


def in_duckdb(select, frame, name="rows"):
    connection = duckdb.connect()
    connection.register("arrow", frame.to_arrow())
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow")
    connection.execute(f"SET max_expression_depth TO {DEPTH['most']}")
    return fetched(connection.execute(select))


def in_sqlite(select, frame, name="rows"):
    connection = sqlite3.connect(":memory:")
    connection.setlimit(sqlite3.SQLITE_LIMIT_EXPR_DEPTH, DEPTH["most"])
    names = ", ".join('"' + one.replace('"', '""') + '"' for one in frame.columns)
    connection.execute(f"CREATE TABLE {name} ({names})")
    connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * frame.width)})", frame.rows())
    return fetched(connection.execute(select))


def fetched(result):
    names = [one[0] for one in result.description]
    columns = zip(*result.fetchall(), strict=True)
    return pl.DataFrame([pl.Series(name, cells) for name, cells in zip(names, columns, strict=True)])


DATABASES = {"duckdb": in_duckdb, "sqlite": in_sqlite}


@pytest.fixture(params=DATABASES)
def database(request):
    return request.param


def logs_of(out):
    return out.select(pl.col("^log_p_.*$").cast(pl.Float64)).to_numpy()


def require_agreement(model, frame, database):
    """The SELECT gives the posterior, the prediction and the probabilities of every row of a frame."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unseen categories and impossible rows
        wanted, predicted = model.predict_log_proba(frame), model.predict(frame)
    numbered = frame.with_row_index("the row").with_columns(pl.col("the row").cast(pl.Int64))
    out = DATABASES[database](model.to_sql(dialect=database, columns=["the row"]), numbered)
    out = out.sort("the row").drop("the row")  # a SELECT has no order
    logs = logs_of(out)
    np.testing.assert_allclose(logs, wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        out.select(pl.col("^p_.*$").cast(pl.Float64)).to_numpy(), np.exp(wanted), rtol=1e-9, atol=1e-12
    )
    two = np.sort(np.nan_to_num(wanted, nan=-np.inf), axis=1)
    with np.errstate(invalid="ignore"):  # −∞ − −∞
        clear = (two[:, -1] - two[:, -2] > 1e-9) | np.isnan(wanted[:, 0]) if wanted.shape[1] > 1 else slice(None)
    said = np.array(out["prediction"].to_list())
    if predicted.dtype.kind == "b":
        said = said.astype(bool)  # SQLite knows 0 and 1 only
    np.testing.assert_array_equal(said[clear], predicted[clear])
    return out


def with_holes(frame, share, rng):
    """Return the frame with some cells of every column emptied."""
    return frame.with_columns(
        pl.when(pl.Series(rng.random(frame.height) >= share)).then(pl.col(name)).alias(name) for name in frame.columns
    )


PENGUINS = load_penguins()
FEATURES = PENGUINS.drop("species")
MODELS = {
    "naive Bayes": (po.NaiveBayes(), PENGUINS),
    "naive Bayes of all kinds": (
        po.NaiveBayes(
            distributions={"year": "categorical", "body_mass_g": "binned", "flipper_length_mm": "poisson"},
            missing="informative",
        ),
        PENGUINS,
    ),
    "naive Bayes with weights": (po.NaiveBayes(feature_weights="conditional"), PENGUINS),
    "naive Bayes with learned tables": (po.NaiveBayes(distributions="binned", feature_weights="cells"), PENGUINS),
    "naive Bayes of components": (po.NaiveBayes(em=po.EM(components_per_class=2), random_state=0), PENGUINS),
    "lda": (po.GaussianDiscriminant(), PENGUINS),
    "lda with weights": (po.GaussianDiscriminant(feature_weights="conditional"), PENGUINS.drop_nulls()),
    "lda of components": (
        po.GaussianDiscriminant(em=po.EM(components_per_class={"Adelie": 2}), random_state=0),
        PENGUINS,
    ),
    "rda, informative": (po.GaussianDiscriminant(pooling=0.5, missing="informative"), PENGUINS),
    "spheres": (po.GaussianDiscriminant(pooling="per_class", shrinkage=1.0), PENGUINS),
    "tan": (po.TreeAugmentedNaiveBayes(), PENGUINS),
    "tan of Gaussians": (po.TreeAugmentedNaiveBayes(bins=None, missing="informative"), PENGUINS),
    "tan without smoothing": (po.TreeAugmentedNaiveBayes(backoff=None, alpha=0.0), PENGUINS),
    "tan of components": (
        po.TreeAugmentedNaiveBayes(em=po.EM(components_per_class={"Adelie": 2}), bins=3, random_state=0),
        PENGUINS,
    ),
    "chow-liu of Gaussians": (po.classifiers.ChowLiuClassifier(bins=None), PENGUINS),
    "kdb with weights": (po.KDependenceBayes(bins=4, feature_weights="conditional", missing="informative"), PENGUINS),
    "kdb 3 without smoothing": (po.KDependenceBayes(k=3, bins=2, backoff=None, alpha=0.0), PENGUINS),
    "aode": (po.AveragedOneDependence(), PENGUINS),
    "forest": (po.GenerativeForest(4, missing="informative"), PENGUINS),
    "sum of trees": (po.GenerativeForest(10, combine="sum"), PENGUINS),
    "pool with a sum of trees": (
        po.GenerativeClassifier([po.NaiveBayes(), po.GenerativeForest(10, combine="sum")], folds=2),
        PENGUINS,
    ),
    "full joint": (po.classifiers.FullJointClassifier(), PENGUINS.select("island", "sex", "year", "species")),
    "full joint without smoothing": (
        po.classifiers.FullJointClassifier(alpha=0.0),
        PENGUINS.select("island", "sex", "species"),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_it_agrees_on_penguins_with_more_cells_missing_or_unseen(name):
    model, rows = MODELS[name]
    model.fit(rows, "species")
    rng = np.random.default_rng(0)
    strange = with_holes(FEATURES, 0.4, rng).with_columns(
        island=pl.when(pl.Series(rng.random(FEATURES.height) < 0.2)).then(pl.lit("Elsewhere")).otherwise("island")
    )
    some = pl.concat([FEATURES, strange]).gather_every(3)
    for database in DATABASES:
        require_agreement(model, some, database)


def mixed_rows(rng, n, numbers, categories, n_classes, offset=0.0):
    """Return rows of dependent numbers and categories, some cells missing, and their classes."""
    y = rng.integers(0, n_classes, n)
    base = rng.normal(size=n) + y
    columns = {f"x{j}": base * rng.normal() + rng.normal(size=n) + offset for j in range(numbers)}
    for j in range(categories):
        cells = (np.abs(np.floor(base + rng.normal(size=n))).astype(int) + y * j) % (j + 2)
        columns[f"k{j}"] = np.array(list("abcdefgh"))[cells]
    return pl.DataFrame(columns), y


def in_every_pattern(frame):
    """Return the first two rows of a frame with every set of their cells emptied."""
    rows = [
        tuple(cell if shown else None for cell, shown in zip(row, pattern, strict=True))
        for pattern in itertools.product([True, False], repeat=frame.width)
        for row in frame[:2].rows()
    ]
    return pl.DataFrame(rows, schema=frame.schema, orient="row")


PATTERNS = {
    "lda": (po.GaussianDiscriminant(), 4, 0),
    "qda": (po.GaussianDiscriminant(pooling="per_class"), 4, 1),
    "nb predictive": (po.NaiveBayes(predictive=True), 3, 1),
    "qda predictive": (po.GaussianDiscriminant(pooling="per_class", predictive=True), 3, 1),
    "tan": (po.TreeAugmentedNaiveBayes(bins=3), 2, 3),
    "tan of Gaussians": (po.TreeAugmentedNaiveBayes(bins=None), 4, 1),
    "chow-liu": (po.classifiers.ChowLiuClassifier(bins=None), 3, 2),
    "kdb": (po.KDependenceBayes(bins=3), 2, 3),
    "aode": (po.AveragedOneDependence(bins=3), 2, 3),
    "forest": (po.GenerativeForest(5, splits="best"), 2, 3),
    "sum of trees": (po.GenerativeForest(5, combine="sum"), 2, 3),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_every_pattern_of_missing_cells_is_integrated_out(name, database):
    model, numbers, categories = PATTERNS[name]
    rng = np.random.default_rng(3)
    frame, y = mixed_rows(rng, 120, numbers, categories, 3, offset=1e9)
    model.fit(frame, y)
    require_agreement(model, in_every_pattern(frame), database)


@settings(max_examples=6)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(1, 4)),
    alpha=st.sampled_from([0.0, 1.0]),
    kind=st.sampled_from(["bayes", "binned", "tan", "forest", "kdb", "aode"]),
)
def test_it_agrees_on_tables_of_any_shape(seed, shape, alpha, kind):
    numbers, categories, n_classes = shape
    rng = np.random.default_rng(seed)
    frame, y = mixed_rows(rng, 40, numbers, max(categories, 1 - numbers), n_classes)
    model = {
        "bayes": po.NaiveBayes(alpha=alpha),
        "binned": po.NaiveBayes(distributions={f"x{j}": "binned" for j in range(numbers)}, alpha=alpha),
        "tan": po.TreeAugmentedNaiveBayes(bins=None, backoff=None, alpha=alpha),
        "forest": po.classifiers.ChowLiuClassifier(bins=3, backoff=None, alpha=alpha),
        "kdb": po.KDependenceBayes(bins=3, backoff=None, alpha=alpha),
        "aode": po.AveragedOneDependence(bins=3, backoff=None, alpha=alpha),
    }[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of constant columns
        model.fit(with_holes(frame, 0.2, rng), np.array(["p", "q", "r", "s"])[y])
    for database in DATABASES:
        require_agreement(model, with_holes(frame, 0.3, rng), database)


COUNTS = {
    "multinomial": "multinomial",
    "multinomial without smoothing": po.Multinomial(alpha=0.0),
    "scaled": "scaled",
    "complement": "complement",
    "presence": "presence",
    "compound": "compound",
    "rate": "poisson_rate",
    "rate of an exposure": po.PoissonRate("hours", smoothing=0.0),
}


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("multinomial", "conditional"),
        *((name, None) for name in COUNTS),
        *((name, "conditional") for name in COUNTS if name != "multinomial"),
    ],
)
def test_counts_in_columns_agree_with_cells_missing(name, weights):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 30)
    rates = rng.gamma(1.0, 2.0, (3, 3))[y] * rng.gamma(1.0, 1.0, (30, 1))
    words = pl.DataFrame({f"w{j}": rng.poisson(rates[:, j]).astype(float) for j in range(3)})
    frame = words.with_columns(hours=pl.Series(rng.gamma(2.0, 1.0, 30)))
    model = po.NaiveBayes(distributions=dict.fromkeys(words.columns, COUNTS[name]), feature_weights=weights)
    model.fit(frame, y)
    assert 0.3 < sizes.estimate_length(model.model_) / len(model.to_sql()) < 2
    blank = frame[:3].with_columns(pl.lit(None, pl.Float64).alias(word) for word in words.columns)
    none = frame[:3].with_columns(pl.lit(0.0).alias(word) for word in words.columns)
    rows = pl.concat([frame, with_holes(frame, 0.3, rng), blank, none, with_holes(none, 0.5, rng)])
    for database in DATABASES:
        require_agreement(model, rows, database)
        refused = frame[:2].with_columns(w0=pl.Series([-1.0, 1e16]))
        assert DATABASES[database](model.to_sql(dialect=database), refused)["prediction"].to_list() == [None] * 2


@pytest.mark.parametrize("offset", [1e9, -1e9])
def test_an_offset_loses_no_digit(offset, database):
    frame, y = mixed_rows(np.random.default_rng(1), 200, 4, 0, 2, offset)
    for model in (
        po.NaiveBayes(),
        po.NaiveBayes(distributions={"x1": "binned"}),
        po.GaussianDiscriminant(pooling="per_class"),
        po.TreeAugmentedNaiveBayes(bins=None),
    ):
        require_agreement(model.fit(frame, y), frame, database)


def test_a_column_without_any_category_tells_nothing(database):
    frame, y = mixed_rows(np.random.default_rng(6), 60, 1, 2, 2)
    empty = frame.with_columns(none=pl.lit(None, dtype=pl.String)).select("none", *frame.columns)
    models = (
        po.NaiveBayes(),
        po.TreeAugmentedNaiveBayes(bins=3),
        po.KDependenceBayes(bins=3),
        po.AveragedOneDependence(bins=3),
    )
    for model in models:
        wanted = model.fit(frame, y).predict_log_proba(frame)
        with pytest.warns(UserWarning, match="none"):
            model.fit(empty, y)
        out = DATABASES[database](model.to_sql(dialect=database), empty)
        if isinstance(model, po.AveragedOneDependence):  # whose average has one tree more
            wanted = model.predict_log_proba(empty)
        np.testing.assert_allclose(*(np.sort(one, axis=0) for one in (logs_of(out), wanted)), rtol=1e-9, atol=1e-9)


def test_a_cell_at_a_cut_is_above_it(database):
    cuts = np.sort(np.random.default_rng(5).normal(size=60) * 10.0 ** np.arange(60).clip(0, 12))
    frame = pl.DataFrame({"x": np.concatenate([cuts, np.nextafter(cuts, -np.inf)])})
    y = np.arange(120) // 60
    model = po.NaiveBayes(distributions={"x": Binned(tuple(cuts))})
    require_agreement(model.fit(frame, y), frame, database)


LABELS = {
    "quotes": ["it's", 'a "class"', "back\\slash"],
    "integers": [-1, 0, 10**12],
    "booleans": [False, True],
    "one": ["only"],
    "reserved": ["select", "NULL", ""],
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_classes_and_names_are_quoted(labels, database):
    rng = np.random.default_rng(2)
    frame, y = mixed_rows(rng, 60, 2, 2, len(labels))
    frame = frame.rename({"x0": 'a "b" `c`', "x1": "select", "k0": "it's; --", "k1": "x[0] %s ?"})
    model = po.NaiveBayes().fit(frame, np.array(labels)[y])
    out = require_agreement(model, frame, database)
    names = [str(label).lower() if isinstance(label, bool) else str(label) for label in sorted(labels)]
    expected = ["prediction", *(f"p_{one}" for one in names), *(f"log_p_{one}" for one in names)]
    assert out.columns == expected


def test_categories_are_of_their_own_type(database):
    frame = pl.DataFrame(
        {"flag": [True, False, None, True] * 5, "year": [2007, 2008, 2009, 2007] * 5, "rate": [0.1, 1 / 3, 0.1, 2] * 5}
    )
    model = po.NaiveBayes(columns=po.Columns(categorical_features=["year", "rate"])).fit(frame, [0, 1, 0, 1] * 5)
    strange = pl.DataFrame({"flag": [True, None], "year": [1900, 2008], "rate": [0.2, None]}, schema=frame.schema)
    require_agreement(model, pl.concat([frame, strange]), database)


def test_an_enumeration_and_narrow_numbers_are_read(database):
    frame = pl.DataFrame(
        {
            "size": pl.Series(["s", "m", "s", "l"] * 5, dtype=pl.Enum(["s", "m", "l", "xl"])),
            "x": pl.Series([0.1, 2.3, 0.7, 3.1] * 5, dtype=pl.Float32),
            "n": pl.Series([1, 4, 2, 9] * 5, dtype=pl.Int8),
        }
    )
    model = po.NaiveBayes(distributions={"n": "poisson"}).fit(frame, [0, 1, 0, 1] * 5)
    require_agreement(model, frame, database)


def test_a_row_that_no_class_can_produce_has_no_posterior(database):
    rows = pl.DataFrame({"a": ["u", "u", "v", "v", "v"], "b": ["s", "s", "t", "t", "t"]})
    model = po.NaiveBayes(alpha=0.0).fit(rows, ["one", "one", "two", "two", "two"])
    out = require_agreement(model, pl.DataFrame({"a": ["u", "u", None], "b": ["t", "s", None]}), database)
    assert out["prediction"].to_list() == ["two", "one", "two"]
    assert out["log_p_one"].to_list()[0] is None
    assert out["log_p_two"].to_list()[1] == -np.inf
    assert out["p_two"].to_list()[1] == 0.0


def test_a_row_that_predict_refuses_has_no_prediction(database):
    rows = pl.DataFrame({"x": [1.0, 2.0, 8.0, 9.0], "n": [1.0, 2.0, 3.0, 4.0]})
    model = po.NaiveBayes(distributions={"n": "poisson"}).fit(rows, [0, 0, 1, 1])
    odd = pl.DataFrame({"x": [np.inf, -np.inf, 1.0, 1.0, np.nan], "n": [1.0, 1.0, -1.0, 0.5, np.nan]})
    out = DATABASES[database](model.to_sql(dialect=database), odd)
    assert out["prediction"].to_list() == [None, None, None, None, 0]
    assert out["p_0"].to_list()[:4] == [None] * 4
    assert out["p_0"].to_list()[4] == pytest.approx(0.5)


def test_a_word_among_numbers_has_no_prediction_in_sqlite():
    rows = pl.DataFrame({"x": [1.0, 2.0, 8.0, 9.0]})
    model = po.NaiveBayes().fit(rows, [0, 0, 1, 1])
    out = in_sqlite(model.to_sql(dialect="sqlite"), pl.DataFrame({"x": ["what", "2.0"]}))
    assert out["prediction"].to_list() == [None, 0]


def test_a_column_that_is_absent_is_an_error(database):
    model = po.NaiveBayes().fit(PENGUINS, "species")
    with pytest.raises((duckdb.Error, sqlite3.Error), match="island"):
        DATABASES[database](model.to_sql(dialect=database), FEATURES.drop("island"))


def test_many_columns_and_classes_are_no_deep_expression(database, monkeypatch):
    monkeypatch.setitem(DEPTH, "most", 50)
    rng = np.random.default_rng(4)
    y = np.arange(120) % 60
    frame = pl.DataFrame({"x": rng.normal(size=120) + y})
    require_agreement(po.NaiveBayes().fit(frame, y), frame[:20], database)
    wide = pl.DataFrame({f"x{j}": rng.normal(size=50) for j in range(60)})
    require_agreement(po.NaiveBayes().fit(wide, np.zeros(50, int)), wide[:5], database)


def test_columns_are_handed_on_and_the_table_may_be_a_select(database):
    model = po.NaiveBayes().fit(PENGUINS, "species")
    frame = PENGUINS.with_row_index("my id").with_columns(pl.col("my id").cast(pl.Int64))
    select = model.to_sql('(SELECT * FROM birds WHERE "my id" < 3)', database, columns=["my id", "species"])
    out = DATABASES[database](select, frame, "birds")
    assert out.columns[:3] == ["my id", "species", "prediction"]
    assert out["my id"].to_list() == [0, 1, 2]
    features = DATABASES[database](model.to_sql("birds", database), frame, "birds")
    assert features.columns[: FEATURES.width] == FEATURES.columns
    assert features["island"].to_list() == FEATURES["island"].to_list()


def test_duckdb_scores_a_file(tmp_path):
    model = po.GaussianDiscriminant().fit(PENGUINS, "species")
    path = tmp_path / "birds.parquet"
    PENGUINS.write_parquet(path)
    out = fetched(duckdb.connect().execute(model.to_sql(f"read_parquet('{path}')")))
    np.testing.assert_allclose(logs_of(out), model.predict_log_proba(FEATURES), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dialect", ["postgres", "bigquery", "tsql", "snowflake", "spark", "mysql", "trino"])
def test_other_dialects_can_read_what_is_written_for_them(dialect):
    rows = PENGUINS.select("sex", "year", "bill_length_mm", "bill_depth_mm", "species")
    for model in (
        po.NaiveBayes(distributions={"bill_depth_mm": "binned", "year": "poisson"}, missing="informative"),
        po.GaussianDiscriminant(pooling=0.5),
        po.TreeAugmentedNaiveBayes(bins=None),
        po.KDependenceBayes(bins=3),
        po.AveragedOneDependence(bins=3),
    ):
        select = model.fit(rows, "species").to_sql(dialect=dialect)
        parsed = sqlglot.parse_one(select, dialect=dialect)
        assert parsed.named_selects[-1] == "log_p_Gentoo"
        assert "NaN" not in select


@pytest.mark.parametrize("pooling", ["pooled", "per_class"])
@pytest.mark.parametrize("d", [5, 15])
def test_the_length_of_a_discriminant_is_estimated(d, pooling):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    model = po.GaussianDiscriminant(pooling=pooling).fit(rng.normal(size=(60, d)) + y[:, np.newaxis], y)
    assert 0.5 < sizes.estimate_length(model.model_) / len(model.to_sql()) < 2


@pytest.mark.parametrize("estimator", [po.KDependenceBayes, po.AveragedOneDependence])
def test_groups_of_categories_are_joined_by_their_codes(estimator, database):
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, 300)
    city = (rng.integers(0, 40, 300) + 40 * (rng.random(300) < 0.3 + 0.4 * y)).astype(str)
    kind = np.array(list("abc"))[(y + rng.integers(0, 2, 300)) % 3]
    frame = pl.DataFrame({"city": city, "kind": kind})
    model = estimator().fit(frame, y)
    require_agreement(model, pl.concat([frame.head(50), with_holes(frame.tail(50), 0.4, rng)]), database)


def test_the_command_line_prints_it(tmp_path, capsys):
    path = tmp_path / "model.posteriori"
    model = po.NaiveBayes().fit(PENGUINS, "species")
    po.save(model, path)
    assert main(["sql", str(path), "--dialect", "sqlite", "--table", "birds", "--columns", "year,sex"]) == 0
    assert capsys.readouterr().out == model.to_sql("birds", "sqlite", ["year", "sex"]) + "\n"
    assert main(["sql", str(path), "--dialect", "cobol"]) == 2
    assert "dialect is 'cobol'" in capsys.readouterr().err


# Pools --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pool():
    members = {
        "lda": po.GaussianDiscriminant(missing="informative"),
        "tan": po.TreeAugmentedNaiveBayes(bins=4),
        "kdb": po.KDependenceBayes(bins=3, feature_weights="conditional"),
        "aode": po.AveragedOneDependence(bins=3),
        "sharp": po.NaiveBayes(alpha=0.0, distributions=po.Gaussian(0.0)),
    }
    columns = ["bill_length_mm", "body_mass_g", "island", "sex", "species"]
    model = po.GenerativeClassifier(members, priors=[0.2, 0.3, 0.5], penalty=100.0, folds=2)
    return model.fit(PENGUINS.select(columns), "species")


def test_a_pool_is_one_select(pool, database, tmp_path, capsys):
    model, features = pool, PENGUINS.select(pool.schema_.names)
    assert len(model.members_) == 5
    holes = with_holes(features, 0.3, np.random.default_rng(0))
    far = features.head(2).with_columns(bill_length_mm=pl.lit(1e9), island=pl.lit("Elba"))
    require_agreement(model, pl.concat([features.head(20), holes.head(60), far]), database)
    po.save(model, tmp_path / "pool.posteriori")
    main(["sql", str(tmp_path / "pool.posteriori"), "--dialect", database])
    assert capsys.readouterr().out.strip() == model.to_sql(dialect=database)


def test_components_of_a_mixture_are_scored(database, tmp_path, capsys):
    model = po.MixtureModel(3, random_state=0).fit(FEATURES)
    rows = with_holes(FEATURES, 0.3, np.random.default_rng(0)).with_row_index("the row")
    select = model.to_sql(dialect=database, columns=["the row"])
    out = DATABASES[database](select, rows.with_columns(pl.col("the row").cast(pl.Int64))).sort("the row")
    wanted = model.predict_proba(rows.drop("the row"))
    np.testing.assert_allclose(out.select(pl.col("^p_.*$").cast(pl.Float64)).to_numpy(), wanted, rtol=1e-9, atol=1e-12)
    assert out["prediction"].to_list() == model.predict(rows.drop("the row")).tolist()
    po.save(model, tmp_path / "m.posteriori")
    assert main(["sql", str(tmp_path / "m.posteriori"), "--dialect", database]) == 0
    assert capsys.readouterr().out.strip() == model.to_sql(dialect=database)
    assert main(["sql", str(tmp_path / "m.posteriori"), "--threshold", "a=0.5"]) == 2
    assert "divides rows into clusters" in capsys.readouterr().err


def test_a_member_without_sql_is_named():
    members = {"nb": po.NaiveBayes(), "trees": po.TreeAugmentedNaiveBayes(feature_weights="conditional")}
    model = po.GenerativeClassifier(members, penalty=1e6, folds=2)
    model.fit(PENGUINS.select("island", "sex", "species"), "species")
    with pytest.raises(ValueError, match="the member 'trees' has factor weights on a tree"):
        model.to_sql()


def test_an_integer_category_beyond_floats_keeps_all_its_digits():
    assert dialects.Dialect("duckdb").written(dialects.Dialect("duckdb").cell(10**400)) == "1" + "0" * 400


@pytest.mark.parametrize("n_rows", [100, 33_000, 100_000])
def test_a_join_with_a_table_of_any_length_is_indexed_in_sqlite(n_rows):
    known = dialects.Dialect("sqlite").table_of("known", ["k", "v"], [(k, float(k)) for k in range(n_rows)])
    select = f"WITH {known} SELECT a, v FROM asked LEFT JOIN known ON k = a"
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE asked (a)")
    connection.execute("INSERT INTO asked VALUES (2), (4), (-1)")
    plan = [line[3] for line in connection.execute(f"EXPLAIN QUERY PLAN {select}")]
    assert any("INDEX (k=?)" in line for line in plan)
    assert connection.execute(select).fetchall() == [(2, 2.0), (4, 4.0), (-1, None)]
