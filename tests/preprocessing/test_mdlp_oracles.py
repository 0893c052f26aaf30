"""MDLPDiscretizer beside WEKA's supervised Discretize, run by Java: the same cuts, and every row in the same bin."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori.datasets import load_penguins

# Every shared table with a target and numeric columns, except two of more than 90,000 rows.
TABLES = [
    "adult", "anneal", "arrhythmia", "autos", "colic", "crx", "cylinder_bands", "diabetes_pima", "electricity",
    "email_spam", "german", "glass", "heart_cleveland", "hepatitis", "hmda", "iris", "labor", "letter", "lymph",
    "magic", "penguins", "phoneme", "pima_na", "satimage", "segment", "sick", "sonar", "spambase", "telco_churn",
    "titanic_1309", "titanic_kaggle", "vehicle", "vowel", "wdbc", "wine", "zoo",
]  # fmt: skip

_UPPER_END = re.compile(r"-(-?\d+(?:\.\d+)?)\]")  # of an interval such as (-inf--0.5], (-0.5-2.5]


@pytest.fixture(scope="module")
def weka():
    """Return the command that runs WEKA's supervised Discretize."""
    if shutil.which("java") is None:
        pytest.skip("java is not installed; it runs WEKA")
    package = importlib.util.find_spec("weka")  # python-weka-wrapper3, of which only the jar is used
    folders = [] if package is None else package.submodule_search_locations or []
    named = [Path(os.environ["WEKA_JAR"])] if os.environ.get("WEKA_JAR") else []
    jar = next((one for one in [*named, *(Path(f, "lib", "weka.jar") for f in folders)] if one.is_file()), None)
    if jar is None:
        pytest.skip("weka.jar is absent; make oracles installs it, or name it in WEKA_JAR")
    return ["java", "-cp", str(jar), "weka.filters.supervised.attribute.Discretize"]


def write_arff(path, values, labels):
    """Write numbers, NaN as missing, and the classes as their codes."""
    classes, codes = np.unique(labels, return_inverse=True)
    head = [f"@attribute x{j} numeric" for j in range(values.shape[1])]
    head.append("@attribute y {" + ",".join(map(str, range(len(classes)))) + "}")
    rows = (
        ",".join(["?" if cell != cell else repr(cell) for cell in row] + [str(code)])
        for row, code in zip(values.tolist(), codes.tolist(), strict=True)
    )
    path.write_text("\n".join(["@relation table", *head, "@data", *rows, ""]))


def read_arff(path):
    """Return the cuts of each column and the bin of each cell, NaN where it is missing."""
    head, _, data = path.read_text().partition("@data")
    declared = [
        line.split("{")[1].rstrip("}").split(",") for line in head.splitlines() if line.startswith("@attribute x")
    ]
    rows = [line.split(",")[:-1] for line in data.split("\n") if line]
    bins = np.array(
        [
            [np.nan if cell == "?" else known.index(cell) for cell, known in zip(row, declared, strict=True)]
            for row in rows
        ]
    )
    return [[float(_UPPER_END.search(label)[1]) for label in labels[:-1]] for labels in declared], bins


def cut_by_weka(weka, folder, values, labels):
    """Return WEKA's cuts of each column and its bin of each cell."""
    write_arff(folder / "in.arff", values, labels)
    files = ["-i", str(folder / "in.arff"), "-o", str(folder / "out.arff")]
    # The default precision of 6 decimals would round the cut points.
    done = subprocess.run(
        [*weka, *files, "-c", "last", "-precision", "15"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return read_arff(folder / "out.arff")


def assert_cut_alike(weka, folder, values, labels):
    cuts, bins = cut_by_weka(weka, folder, values, labels)
    found = po.preprocessing.MDLPDiscretizer().fit(values, labels)
    assert len(cuts) == values.shape[1] > 0
    assert [len(one) for one in found.cuts_] == [len(one) for one in cuts]
    for ours, theirs in zip(found.cuts_, cuts, strict=True):
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)
    assert_array_equal(found.transform(values), bins)


def numbers_of(frame, target):
    """Return the numeric columns besides the target, and the labels, of the rows that have one."""
    frame = frame.filter(pl.col(target).is_not_null())
    values = frame.select(cs.numeric() - cs.by_name(target)).cast(pl.Float64).fill_null(np.nan)
    return values.to_numpy(), frame[target].cast(pl.String).to_numpy()


@pytest.mark.oracle
def test_the_penguins_that_ship_are_cut_as_weka_cuts_them(weka, tmp_path):
    assert_cut_alike(weka, tmp_path, *numbers_of(load_penguins(), "species"))


@pytest.mark.oracle
@pytest.mark.parametrize("name", TABLES)
def test_tables_are_cut_as_weka_cuts_them(weka, shared_data, tmp_path, name):
    index = pl.read_csv(shared_data / "INDEX.tsv", separator="\t")
    row = index.row(by_predicate=pl.col("name") == name, named=True)
    frame = pl.read_csv(shared_data / row["file"], infer_schema_length=None)
    assert_cut_alike(weka, tmp_path, *numbers_of(frame, row["target"]))


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(5))
def test_random_numbers_are_cut_as_weka_cuts_them(weka, tmp_path, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2 + seed, 500)
    # No ties, some and many; an offset far above the spread; negative numbers; two columns without information.
    values = np.column_stack(
        [
            rng.normal(labels, 1.0),
            np.round(rng.normal(labels, 1.0), 1),
            rng.poisson(1.0 + 2.0 * labels),
            1e8 + rng.normal(2.0 * labels, 1.0),
            -np.exp(rng.normal(labels, 1.0)),
            rng.normal(size=500),
            np.full(500, 3.0),
        ]
    )
    values[rng.random(values.shape) < 0.1] = np.nan
    assert_cut_alike(weka, tmp_path, values, labels)
