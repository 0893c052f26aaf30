"""posteriori watch: its state, its exit code, its page, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.cli.watch import ALARM
from tests.cli.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("folder")


def write(name, seed, shift=0.0, labels=True, n=200):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    columns = {"age": rng.normal(40 + shift, 5, n), "size": rng.normal(size=n) + y, "plan": rng.choice(["x", "z"], n)}
    pl.DataFrame(columns | ({"churn": np.array(["no", "yes"])[y]} if labels else {})).write_csv(name)


@pytest.fixture
def line():
    write("train.csv", 0)
    write("earlier.csv", 1)
    line = CommandLine(model="nb", details=False)
    line.succeeds("fit", "train.csv", "--target", "churn", "-o", "m.posteriori")
    return line


def test_batches_are_watched_until_an_alarm_that_stands(line):
    write("b1.csv", 2)
    write("b2.csv", 3, labels=False)
    write("b3.csv", 4, shift=10.0)
    write("b4.csv", 5)
    found = line.succeeds("watch", "m.posteriori", "b1.csv", "--reference", "earlier.csv", "-o", "h.html")
    assert found == "batch 1: 200 rows, 200 with labels; nothing changed\n"
    assert line.succeeds("watch", "m.posteriori", "b2.csv") == "batch 2: 200 rows; nothing changed\n"
    code, out, err = line.run("watch", "m.posteriori", "b3.csv", "-o", "h.html")
    assert (code, err) == (ALARM, "")
    assert out.startswith("batch 3: 200 rows, 200 with labels; alarm: of 100 rows it now predicts ")
    assert "column 'age' changed: numbers are larger than before (evidence " in out
    code, out, _ = line.run("watch", "m.posteriori", "b4.csv", "--json")
    facts = json.loads(out)
    assert (code, facts["batch"], facts["alarms"]["column 'age'"], facts["new_alarms"]) == (ALARM, 4, 3, [])
    assert facts["columns"] == ["age"]
    html = Path("h.html").read_text(encoding="utf-8")
    assert "3 batches, 600 rows" in html
    assert "column &#x27;age&#x27; since batch 3" in html


def test_processes_and_python_count_alike(line):
    write("b1.csv", 2)
    write("b2.csv", 3)
    line.succeeds("watch", "m.posteriori", "b1.csv", "--reference", "earlier.csv", "--state", "a.watch")
    line.succeeds("watch", "m.posteriori", "b2.csv", "--state", "a.watch")
    model = po.load("m.posteriori")
    monitor = po.Monitor(model, pl.read_csv("earlier.csv"))
    for name in ("b1.csv", "b2.csv"):
        monitor.update(pl.read_csv(name))
    monitor.save("b.watch")
    assert Path("a.watch").read_bytes() == Path("b.watch").read_bytes()


def test_a_refused_batch_leaves_the_state(line):
    write("b1.csv", 2)
    line.succeeds("watch", "m.posteriori", "b1.csv", "--reference", "earlier.csv")
    state = Path("m.watch").read_bytes()
    pl.read_csv("b1.csv").drop("age").write_csv("other.csv")
    pl.read_csv("b1.csv").with_columns(churn=pl.lit("maybe")).write_csv("labels.csv")
    Path("empty.csv").write_text("age,size\n", encoding="utf-8")
    assert "the batch lacks column 'age'" in line.refused("watch", "m.posteriori", "other.csv")
    assert "'maybe', which is not among the classes" in line.refused("watch", "m.posteriori", "labels.csv")
    assert "has no rows" in line.refused("watch", "m.posteriori", "empty.csv")
    assert Path("m.watch").read_bytes() == state


def test_the_state_has_to_be_begun_once_and_be_its_own(line):
    write("b1.csv", 2)
    assert "with --reference" in line.refused("watch", "m.posteriori", "b1.csv")
    line.succeeds("watch", "m.posteriori", "b1.csv", "--reference", "earlier.csv")
    for option in (("--reference", "earlier.csv"), ("--false-alarms", "0.1")):
        assert f"exists, and {option[0]} is for a new one" in line.refused("watch", "m.posteriori", "b1.csv", *option)
    Path("m.watch").write_text("{", encoding="utf-8")
    assert "is not the state of a monitor" in line.refused("watch", "m.posteriori", "b1.csv")
    rate = ("--reference", "earlier.csv", "--state", "n.watch", "--false-alarms", "1.5")
    assert "give a probability" in line.refused("watch", "m.posteriori", "b1.csv", *rate)
    for place in ("m.posteriori", "b1.csv", "earlier.csv"):
        start = ("--reference", "earlier.csv", "--state", place)
        assert "would overwrite" in line.refused("watch", "m.posteriori", "b1.csv", *start)
    page = ("--reference", "earlier.csv", "--state", "o.watch", "-o", "page.txt")
    assert "suffix of a web page" in line.refused("watch", "m.posteriori", "b1.csv", *page)
    assert not Path("n.watch").exists()
    assert not Path("o.watch").exists()
