"""Settings and fixtures of all tests."""

import os
import sys
import time
from pathlib import Path

# One process per core runs the tests. Threads of BLAS spin while they wait and would slow each other down.
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

from tests.this_checkout import why_not_tested

if reason := why_not_tested():
    sys.exit(reason)

import hypothesis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from posteriori.kernels.machine.compiling import has_numba, machine_code
from tests.quick import ROOT, listed, marks_of

# Machine code outlives the environment: its folder is named after the sources, so what changed is compiled again.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parents[1] / "build" / "kernels"))

# Kernels compile on first use, so no example has a deadline; the same examples run everywhere.
hypothesis.settings.register_profile("posteriori", deadline=None, derandomize=True, max_examples=12)
hypothesis.settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=30)  # make laws
hypothesis.settings.load_profile("posteriori")


_LONGEST = ("test_fuzz.py", "test_dask.py")  # they wait for other processes
_FULL = listed()


def pytest_addoption(parser):
    parser.addoption("--skipped-to", metavar="FILE", help="write the names of the skipped tests to FILE")
    parser.addoption(
        "--also", metavar="FILE", help="mark the quick tests of FILE as full, as --skipped-to has written it"
    )


def pytest_configure(config):
    """Before workers start on all tests, compile each kernel once, in as many processes as there are cores."""
    distributes = not hasattr(config, "workerinput") and getattr(config.option, "numprocesses", None)
    if distributes and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        began = time.monotonic()
        if machine_code() is None and has_numba():
            from posteriori.kernels.machine.building import compile_all

            compile_all()
        print(f"kernels are ready after {time.monotonic() - began:.0f} s")


def pytest_ignore_collect(collection_path, config):
    """Skip files of which no test is quick in a run that leaves them out."""
    if "not full" in config.option.markexpr and collection_path.is_relative_to(ROOT):
        return _FULL.holds_all_of(collection_path.relative_to(ROOT).as_posix()) or None
    return None


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(config, items):
    """Mark the tests that the quick run leaves out as full or weekly, and begin with those that take longest."""
    marks = marks_of(item.nodeid for item in items)
    also = config.getoption("also")
    names = set(Path(also).read_text("utf-8").splitlines()) if also else set()
    for item in items:
        mark = marks.get(item.nodeid)
        if mark is None and not names.isdisjoint((item.nodeid, item.nodeid.partition("::")[0])):
            mark = "full"
        if mark:
            item.add_marker(mark)
    items.sort(key=lambda item: item.path.name not in _LONGEST)


_SKIPPED = set()


def pytest_runtest_logreport(report):
    """Note each skipped test, in the process that takes all reports."""
    if report.skipped and not hasattr(report, "wasxfail"):
        _SKIPPED.add(report.nodeid)


def pytest_collectreport(report):
    """Note each skipped file."""
    if report.skipped:
        _SKIPPED.add(report.nodeid)


def pytest_sessionfinish(session):
    """Write what was skipped; a worker sends that to the process that writes."""
    if output := getattr(session.config, "workeroutput", None):
        output["skipped"] = sorted(_SKIPPED)
    elif file := session.config.getoption("skipped_to"):
        Path(file).write_text("".join(f"{one}\n" for one in sorted(_SKIPPED)), "utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take what a worker has skipped."""
    _SKIPPED.update(getattr(node, "workeroutput", {}).get("skipped", ()))


def cell_type(cells):
    """Return the type of the cells that are not missing."""
    return next((type(cell) for cell in cells if cell is not None), float)


def numpy_objects(columns):
    table = np.empty((len(next(iter(columns.values()))), len(columns)), dtype=object)
    for j, cells in enumerate(columns.values()):
        table[:, j] = cells
    return table


def pandas_objects(columns):
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})


def pandas_nullable(columns):
    types = {float: "Float64", int: "Int64", str: "string", bool: "boolean"}
    return pd.DataFrame(
        {name: pd.Series(pd.array(cells, dtype=types[cell_type(cells)])) for name, cells in columns.items()}
    )


def pandas_arrow(columns):
    types = {float: pa.float64(), int: pa.int64(), str: pa.string(), bool: pa.bool_()}
    return pd.DataFrame(
        {name: pd.Series(cells, dtype=pd.ArrowDtype(types[cell_type(cells)])) for name, cells in columns.items()}
    )


def polars_frame(columns):
    types = {float: pl.Float64, int: pl.Int64, str: pl.String, bool: pl.Boolean}
    return pl.DataFrame(columns, schema={name: types[cell_type(cells)] for name, cells in columns.items()})


def arrow_table(columns):
    types = {float: pa.float64(), int: pa.int64(), str: pa.string(), bool: pa.bool_()}
    return pa.table({name: pa.array(cells, type=types[cell_type(cells)]) for name, cells in columns.items()})


CONSTRUCTORS = {
    "numpy": numpy_objects,
    "pandas": pd.DataFrame,
    "pandas-object": pandas_objects,
    "pandas-nullable": pandas_nullable,
    "pandas-arrow": pandas_arrow,
    "polars": polars_frame,
    "pyarrow": arrow_table,
}


@pytest.fixture(params=CONSTRUCTORS.values(), ids=CONSTRUCTORS, scope="session")
def constructor(request):
    """Return a function from columns (name to list of cells, None where missing) to a table of some kind."""
    return request.param


@pytest.fixture
def columns():
    """Return a mixed table with missing cells as columns of Python cells."""
    return {
        "height": [1.5, None, 2.25, 0.5, 1.0, -3.0, None, 8.5],
        "floors": [3, 1, None, 2, 2, None, 3, 40],
        "sky": ["clear", "clouds", None, "clouds", "fog", "clear", "clear", None],
        "windy": [True, None, False, False, True, True, None, False],
    }


@pytest.fixture
def labels():
    """Return the labels of those rows."""
    return ["no", "yes", "yes", "no", "yes", "no", "no", "yes"]


@pytest.fixture(scope="session")
def mixed_frame():
    """Return a table with numbers and categories and with missing cells, longer than one batch.

    Rows 1300 to 1319 lack height and sky. The last five rows have a category of sky that no other row has.
    """
    rng = np.random.default_rng(0)
    n = 5000
    y = rng.integers(0, 3, n)
    sky = np.array(["clear", "clouds", "fog", "rain"])[(y + rng.integers(0, 2, n)) % 4].tolist()
    lost = np.isin(np.arange(n), np.arange(1300, 1320))
    return pl.DataFrame(
        {
            "height": np.where(lost | (rng.random(n) < 0.1), np.nan, rng.normal(y, 1.0)),
            "width": rng.normal(1e6 + y, 2.0),
            "rooms": rng.poisson(2.0 + y),
            "sky": [None if miss else cell for miss, cell in zip(lost | (rng.random(n) < 0.1), sky, strict=True)],
            "roof": np.array(["flat", "steep"])[(rng.random(n) < 0.3 + 0.2 * y).astype(int)],
            "windy": rng.random(n) < 0.5,
            "y": np.array(["a", "b", "c"])[y],
        }
    ).with_columns(
        pl.col("height").fill_nan(None),
        pl.when(pl.int_range(pl.len()) >= n - 5).then(pl.lit("storm")).otherwise(pl.col("sky")).alias("sky"),
    )


@pytest.fixture(scope="session")
def shared_data():
    """Return the folder of data sets beside the project, or the one that POSTERIORI_DATA names."""
    folder = Path(os.environ.get("POSTERIORI_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not (folder / "BIF_INDEX.tsv").exists():
        pytest.skip("the folder of shared data is absent; name it in POSTERIORI_DATA")
    return folder
