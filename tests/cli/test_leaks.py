"""Columns that predict the class alone, by values or by gaps, are named first, and are never cut."""

import json

import numpy as np
import polars as pl
import pytest

from posteriori.reporting.alerts import LEAKS
from tests.cli.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("folder")
N = 400


def write_table():
    """Write a table with many alerts of other kinds, and leaks of every kind at its end."""
    rng = np.random.default_rng(0)
    late = np.arange(N) % 4 == 0
    heavy = {f"heavy {k}": np.exp(rng.normal(0.0, 3.0, N)) for k in range(8)}
    reasons = np.where(rng.random(N) < 0.5, "weather", "crew")
    notes = [f"the {a} was {b} at gate {c}" for a, b, c in zip(*(rng.choice(list("uvwxyz"), (3, N))), strict=True)]
    table = heavy | {
        "gaps": np.where(rng.random(N) < 0.4, None, rng.normal(size=N)).tolist(),  # of all classes
        "copy": np.where(late, "L", "P").tolist(),
        "delay": (late * 30.0 + rng.random(N)).tolist(),
        "cancel_reason": [r if one and i % 8 else None for i, (r, one) in enumerate(zip(reasons, late, strict=True))],
        "refund": [1.0 if one else None for one in late],
        "note": [text if one else None for text, one in zip(notes, late, strict=True)],
        "boarded": [None if one else float(i) for i, one in enumerate(late)],
        "y": np.where(late, "late", "punctual"),
    }
    pl.DataFrame(table).write_csv("t.csv")


GAPS = ["cancel_reason", "refund", "note", "boarded"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["nb", None])
def test_leaks_come_first_and_are_not_cut(model):
    write_table()
    command = CommandLine(model=model, replaces=True, details=False)
    page = command.succeeds("fit", "t.csv", "-t", "y", "--column", "note=text")
    lines = [line for line in page.splitlines() if line.startswith(("alert:", "hint:"))]
    assert lines[0].startswith("alert: copy and delay: predicts the class alone")
    flat = " ".join(page.split())
    assert "cancel_reason, refund, note and boarded: predicts the class by its gaps" in flat
    alerts = json.loads(command.succeeds("fit", "t.csv", "-t", "y", "--column", "note=text", "--json"))["alerts"]
    kinds = [one["kind"] for one in alerts]
    assert kinds[:6] == [LEAKS[0]] * 2 + [LEAKS[1]] * 4
    assert not set(kinds[6:]) & set(LEAKS)
    by_gaps = {one["columns"][0]: one["text"].replace("\u202f", " ") for one in alerts if one["kind"] == LEAKS[1]}
    assert list(by_gaps) == GAPS
    assert by_gaps["cancel_reason"].startswith(
        "It is filled in 50 % of the rows of class late, and in none of the others"
    )
    assert by_gaps["boarded"].startswith(
        "It is filled in 100 % of the rows of class punctual, and in none of the others"
    )
    assert ("many missing cells", ["gaps"]) in [(one["kind"], one["columns"]) for one in alerts]
    assert not {"many missing cells", "constant"} & {one["kind"] for one in alerts if one["columns"][0] in GAPS}
    details = " ".join(command.succeeds("show", "t.posteriori").split())
    assert details.index("predicts the class alone") < details.index("heavy tail")
