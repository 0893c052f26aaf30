"""Approximations for gaps are named once per command, and not of the rows that a quiet fit learns from."""

import warnings

import numpy as np
import polars as pl
import pytest

from posteriori.cli.messages import one_line_warnings, work_progress
from posteriori.reading.column_kinds import Occurrences
from posteriori.user_warnings import ApproximationWarning
from tests.cli.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("folder")
SENTENCE = "too many cells are missing to sum all of them out exactly"


def test_a_fit_names_them_once_and_a_quiet_one_never():
    rng = np.random.default_rng(0)
    missing = rng.random((11, 1500)) < 0.3
    cells = rng.integers(0, 12, (11, 1500))
    table = {
        f"c{j}": [None if m else f"k{v}" for m, v in zip(*pair, strict=True)]
        for j, pair in enumerate(zip(missing, cells, strict=True))
    }
    pl.DataFrame(table | {"y": rng.integers(0, 2, 1500)}).write_csv("t.csv")
    run = CommandLine(model="kdb", replaces=True).run
    code, _, err = run("fit", "t.csv", "-t", "y", "--set", "k=3")
    assert (code, err.count(SENTENCE)) == (0, 1)
    code, _, err = run("fit", "t.csv", "-t", "y", "--set", "k=3", "-q")
    assert (code, err.count(SENTENCE)) == (0, 0)
    assert run("evaluate", "t.posteriori", "t.csv", "-q")[2].count(SENTENCE) <= 1


def test_other_columns_of_other_batches_do_not_repeat_it(capsys):
    with one_line_warnings():
        for name in "abc":
            warnings.warn(f"in some rows … of column {name!r}", ApproximationWarning, stacklevel=1)
        with work_progress(wanted=False):
            warnings.warn("quiet", ApproximationWarning, stacklevel=1)
            warnings.warn("other", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: in some rows … of column 'a'\nwarning: other\n"


@pytest.mark.parametrize("n", [200_000, 131_073])
def test_estimated_distinct_values_never_exceed_the_cells(n):
    values = np.random.default_rng(n).integers(0, 2**63, n).astype(np.uint64)
    parts = [Occurrences.of(part) for part in np.array_split(values, 3)]
    found = parts[0] + parts[1] + parts[2]
    assert found.n_cells == n
    said = found.reason.split("(about ")[1].split(" cells")[0].replace(",", "").split(" in ")
    assert int(said[0]) <= int(said[1]) == n
