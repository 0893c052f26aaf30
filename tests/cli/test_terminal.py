"""What is printed is no wider than the terminal, and numbers stay short."""

from __future__ import annotations

import contextlib
import io
import re

import numpy as np
import polars as pl
import pytest

from posteriori.cli import messages, tables
from posteriori.cli.tables import bar, console, new_table, print_rows
from posteriori.support import formatting
from tests.cli.command_line import CommandLine

COMMAND_LINE = CommandLine(model="nb", replaces=True)
run, succeeds, refused = COMMAND_LINE.run, COMMAND_LINE.succeeds, COMMAND_LINE.refused
pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    rng = np.random.default_rng(0)
    labels = [f"a-class-with-a-long-name-{k}" for k in range(25)]
    y = np.repeat(labels, 8)
    table = {
        f"a_feature_with_quite_a_long_name_{j}": rng.choice(["lorem ipsum dolor sit amet", "b", "c"], 200)
        for j in range(3)
    }
    frame = pl.DataFrame(table | {"x": rng.normal(size=200) * 1e6, "y": y})
    frame.write_csv("t.csv")
    commands_of = (
        ("fit", "t.csv", "--target", "y"),
        ("evaluate", "t.posteriori", "t.csv"),
        ("explain", "t.posteriori", "t.csv"),
        ("show", "t.posteriori"),
    )
    for arguments in commands_of:
        out = succeeds(*arguments)
        ruled = [line for line in out.splitlines() if "─" in line or "█" in line]
        assert ruled
        assert max(len(line.rstrip()) for line in ruled) <= width, arguments
        if arguments[0] != "explain":
            assert max(len(line.rstrip()) for line in out.splitlines()) <= width, arguments


@pytest.mark.parametrize("width", [60, 72, 80, 100])
def test_numbers_are_never_cut(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    table = new_table("a heading of names", "states", *(f"score {k}" for k in range(5)), left=2)
    numbers = [f"{k}.{k}78 ± 0.0{k}4" for k in range(5)]
    table.add_row("a name that is as long as any that is seen", "StrongUp, WeakUp, Neutral, Down", *numbers)
    print_rows(console(), table)
    lines = capsys.readouterr().out.splitlines()
    assert all(any(one in line for line in lines) for one in numbers)
    assert max(len(line.rstrip()) for line in lines) <= width
    assert all(line.startswith("a ") for line in lines if "±" in line)  # every part repeats the names


def test_every_variable_of_a_wide_network_is_named(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    states = [f"a state with a long name {k}" for k in range(5)]
    rng = np.random.default_rng(0)
    pl.DataFrame({name: rng.choice(states, 100) for name in ("LVFailure", "History")}).write_csv("states.csv")
    succeeds("network", "learn", "states.csv", "-o", "states.bif")
    out = succeeds("network", "show", "states.bif")
    assert "LVFailure" in out
    assert "History" in out


def test_confusions_are_named_then_numbered_then_listed(monkeypatch):
    x = np.random.default_rng(0).normal(size=(90, 1))
    frames = {}
    for n_classes, length in ((3, 1), (9, 15), (30, 12)):
        y = [f"{k % n_classes:0{length}d}c" for k in range(90)]
        frames[n_classes] = pl.DataFrame({"x": x[:, 0], "y": y})
    headers = {}
    for n_classes, frame in frames.items():
        frame.write_csv("t.csv")
        succeeds("fit", "t.csv", "--target", "y")
        headers[n_classes] = succeeds("evaluate", "t.posteriori", "t.csv")
    assert re.search(r"predicted → +0c +1c +2c", headers[3])
    assert re.search(r"predicted →  +1  +2  +3", headers[9])
    assert "most frequent mistakes" in headers[30]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (189664.1, "189664"),
        (38.1279, "38.13"),
        (-0.001234, "-0.001234"),
        (1e-12, "1e-12"),
        (2.5e12, "2.5e+12"),
        (float("nan"), "–"),
        (None, "–"),
        (100.0, "100"),
    ],
)
def test_numbers(value, text):
    assert formatting.number(value) == text


def test_counts_too_long_to_read_are_powers_of_ten():
    assert formatting.count(1234567) == "1,234,567"
    assert formatting.count(19 * 10**15) == "about 1.9e16"
    assert formatting.count(10**400) == "about 1.0e400"
    assert tables.plain(10**400) is None


def test_messages_are_one_line_and_said_once():
    err = io.StringIO()
    with contextlib.redirect_stderr(err), messages.one_line_warnings():
        import warnings

        for _ in range(2):
            warnings.warn("a\n  b", UserWarning, stacklevel=1)
    assert err.getvalue() == "warning: a b\n"


def test_a_bar_is_as_long_as_its_share_and_never_negative():
    assert [bar(value, 2.0, width=8) for value in (2.0, 1.0, 0.0, -1.0)] == ["█" * 8, "█" * 4, "", ""]
    assert bar(-1e300, 1e-300) == ""
