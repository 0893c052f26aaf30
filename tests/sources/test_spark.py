"""Spark in local mode: a few of the tests of every source, for each pass is a job; and faults of tables."""

import itertools
import os
import shutil
import sys
import warnings

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import posteriori as po

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs a Java virtual machine, and there is none", allow_module_level=True)

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets of py4j
    pytest.mark.filterwarnings("ignore:distutils Version classes:DeprecationWarning"),  # Spark 3.5
]


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # What pays only where a session lasts.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
    }
    session = SparkSession.builder.master("local[1]").config(map=options).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def in_parts(spark):
    """Return a function from a polars frame to a Spark DataFrame of the rows between cuts."""

    from pyspark.sql.pandas.types import from_arrow_schema

    def build(frame, *cuts):
        cuts = [0, *cuts, frame.height]
        parts = [frame[start:stop].rows() for start, stop in itertools.pairwise(cuts)]
        rows = spark.sparkContext.parallelize(parts, len(parts)).flatMap(lambda part: part)
        return spark.createDataFrame(rows, from_arrow_schema(frame[:1].to_arrow().schema)).cache()

    return build


@pytest.fixture(scope="module")
def frame(mixed_frame):
    return mixed_frame


@pytest.fixture(scope="module")
def rows(in_parts, frame):
    """Return the rows: one partition has none, one no cell of some columns, the last one category more."""
    return in_parts(frame, 1300, 1300, 1320)


def agree(model, other, rows):
    np.testing.assert_allclose(model.predict_log_proba(rows), other.predict_log_proba(rows), rtol=1e-9, atol=1e-11)


def arrow(table):
    """Return a Spark DataFrame as an Arrow table; before version 4, the method for this is private."""
    return table.toArrow() if hasattr(table, "toArrow") else pa.Table.from_batches(table._collect_as_arrow())


def column(table, name):
    return arrow(table)[name].to_pylist()


# The same model, predictions, warnings -------------------------------------------------------------------------------


MIXED = {"height": po.Binned(), "rooms": "poisson", "width": po.Binned(8)}


@pytest.mark.parametrize(
    "estimator",
    [
        po.NaiveBayes(distributions=MIXED, n_jobs=2),
        po.TreeAugmentedNaiveBayes(),
    ],
    ids=["NaiveBayes", "TAN"],
)
def test_the_model_and_what_is_warned_of_are_those_of_memory(rows, frame, estimator):
    from sklearn.base import clone

    models, said = [], []
    for one in (rows, frame):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            models.append(clone(estimator).fit(one, "y"))
        said.append([str(w.message) for w in caught if issubclass(w.category, UserWarning)])  # not those of PySpark
    assert said[0] == said[1]
    agree(*models, frame)


def test_predictions_are_a_column_more(rows, frame):
    model = po.NaiveBayes().fit(frame, "y")
    predicted = model.predict(rows)
    assert predicted.columns == [*frame.columns, "prediction"]
    assert column(predicted, "prediction") == model.predict(frame).tolist()
    posterior = column(model.predict_proba(rows), "probability")
    np.testing.assert_allclose(posterior, model.predict_proba(frame), rtol=1e-9)
    np.testing.assert_allclose(column(model.score_samples(rows), "log_density"), model.score_samples(frame), rtol=1e-9)
    trained = po.NaiveBayes().fit(frame.rename({"roof": "prediction"}), "y")
    with pytest.raises(ValueError, match="has a column 'prediction' already"):
        trained.predict(rows.withColumnRenamed("roof", "prediction"))
    assert model.score(rows, "y") == model.score(frame, "y")


def test_labels_and_weights_may_be_apart(rows, frame):
    weight = np.random.default_rng(1).exponential(size=frame.height)
    features = frame.drop("y")
    model = po.NaiveBayes().fit(rows.drop("y"), frame["y"], sample_weight=weight)
    agree(model, po.NaiveBayes().fit(features, frame["y"], sample_weight=weight), features)


def test_rows_without_label_teach(in_parts, frame):
    hidden = frame.with_columns(pl.when(pl.int_range(pl.len()) < 1500).then(None).otherwise(pl.col("y")).alias("y"))
    rows = in_parts(hidden, 1300)
    agree(
        *(
            po.NaiveBayes(labels=po.Labels(unlabelled="learn"), em=po.EM(max_iter=3, tol=1.0)).fit(one, "y")
            for one in (rows, hidden)
        ),
        frame,
    )


def test_models_are_compared(rows, frame):
    columns = ["width", "rooms", "roof", "y"]  # with no missing number, for which LDA would take EM
    found, expected = (po.cross_validate(["nb", "lda"], one.select(*columns), "y", folds=3) for one in (rows, frame))
    for name, posterior in expected.posteriors.items():
        np.testing.assert_allclose(found.posteriors[name], posterior, rtol=1e-9, atol=1e-12)


def test_the_pool_is_that_of_memory(rows, frame):
    models = [po.GenerativeClassifier(["nb", "tan"], folds=2).fit(one, "y") for one in (rows, frame)]
    agree(*models, frame)
    assert column(models[0].predict(rows), "prediction") == models[1].predict(frame).tolist()


# Faults --------------------------------------------------------------------------------------------------------------


def test_columns_may_be_called_anything(in_parts, frame):
    names = {"height": "a.b", "sky": "c `d`", "roof": 'e\'s "f"', "y": "the.target"}
    renamed = frame.select(*names).rename(names)
    rows = in_parts(renamed, 2000)
    model, other = (po.NaiveBayes().fit(one, "the.target") for one in (rows, renamed))
    agree(model, other, renamed)
    predicted = model.predict(rows)
    assert predicted.columns == [*names.values(), "prediction"]
    assert column(predicted, "prediction") == other.predict(renamed).tolist()


def test_columns_of_one_name_are_refused(rows):
    with pytest.raises(ValueError, match="column 'a' occurs twice; rename or drop one"):
        po.NaiveBayes().fit(rows.select("height", "width", "y").toDF("a", "a", "y"), "y")
    with pytest.raises(ValueError, match="'nope' is not a column of X"):
        po.NaiveBayes().fit(rows, "nope")
    with pytest.raises(TypeError, match="y is a lazy table; add it to X as a column"):
        po.NaiveBayes().fit(rows, rows.select("y"))
    with pytest.raises(TypeError, match="give a DataFrame"):
        po.NaiveBayes().fit(rows["height"], "y")


def test_executors_say_what_is_wrong_in_the_same_words(in_parts, frame):
    infinite = frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 4321).then(np.inf).otherwise(pl.col("width")).alias("width")
    )
    with pytest.raises(ValueError, match="'width' holds inf in row 4321") as there:
        po.NaiveBayes().fit(in_parts(infinite, 0, 1000, 3000), "y")
    with pytest.raises(ValueError, match="inf") as here:
        po.NaiveBayes().fit(infinite, "y")
    assert str(there.value) == str(here.value)
    hidden = frame.with_columns(pl.when(pl.int_range(pl.len()) == 4321).then(None).otherwise(pl.col("y")).alias("y"))
    with pytest.raises(ValueError, match="row 4321 is missing"):
        po.NaiveBayes(labels=po.Labels(unlabelled="error")).fit(in_parts(hidden, 1000, 3000), "y")


def test_categories_may_need_codes_of_32_bits(spark):
    """No partition alone has so many."""
    table = spark.sql("SELECT CONCAT('s', id) AS id, id % 2 AS y FROM range(0, 70000, 1, 6)")
    assert len(po.NaiveBayes().fit(table, "y").schema_.columns[0].categories) == 70_000


def test_no_rows_at_all_are_refused(rows):
    with pytest.raises(ValueError, match="0 sample"):
        po.NaiveBayes().fit(rows.limit(0), "y")


def test_types_of_sql_are_read(spark, frame):
    """Decimals and small integers are numbers, dates are read as their parts."""
    table = spark.sql(
        "SELECT CAST(id AS DECIMAL(9, 2)) AS price, CAST(id % 7 AS TINYINT) AS day, id % 2 = 0 AS even, "
        "IF(id % 5 = 0, NULL, CONCAT('s', id % 3)) AS shop, CAST(id % 4 < 2 AS INT) AS y FROM range(0, 400, 1, 3)"
    )
    here = pl.from_arrow(arrow(table))
    agree(
        *(po.NaiveBayes(columns=po.Columns(categorical_features=["day"])).fit(one, "y") for one in (table, here)), here
    )
    table = table.selectExpr("price", "y", "DATE_ADD('2020-01-01', CAST(price AS INT)) AS born")
    here = pl.from_arrow(arrow(table))
    agree(*(po.NaiveBayes().fit(one, "y") for one in (table, here)), here)


def test_rows_that_come_differently_each_time_are_refused(rows):
    def draw(batches):
        for batch in batches:
            yield batch.slice(int.from_bytes(os.urandom(4), "big") % max(1, batch.num_rows))

    few = rows.select("height", "y")
    with pytest.raises(ValueError, match="rows come differently each time; persist"):
        po.NaiveBayes().fit(few.mapInArrow(draw, few.schema), "y")
