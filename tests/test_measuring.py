"""How benchmarks and experiments measure: the threads of rivals, other work on the machine, scores kept in a file."""

import json
import os
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from benchmarks.timing import CPU, alternately, faster, rival, show, within
from experiments import larger_tables, machine

ROOT = Path(__file__).parents[1]
BUSY = "import time\nwhile time.process_time() < 60: pass"


def cpu_seconds(pid):
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("number", [1, 3])
def test_every_rival_has_the_threads_that_the_table_names(number, monkeypatch):
    monkeypatch.setenv(machine.THREADS, str(number))
    assert rival(RandomForestClassifier()).n_jobs == number
    assert rival(GaussianNB()).get_params() == GaussianNB().get_params()  # it has no threads
    assert machine.on_threads("forest") == ("forest on 1 thread" if number == 1 else "forest on 3 threads")


@pytest.mark.parametrize("number", [1, 2])
def test_the_limits_hold_for_the_libraries_of_a_started_process(number):
    code = """
import joblib, numba, polars, sklearn.ensemble, threadpoolctl
from posteriori.support.threads import n_threads
pools = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
print(max(pools), joblib.cpu_count(), polars.thread_pool_size(), numba.config.NUMBA_NUM_THREADS, n_threads(None))
"""
    environment = os.environ | machine.limits(number)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    used = [int(one) for one in done.stdout.split()]
    assert used == [min(number, joblib.cpu_count()), *used[1:]]
    assert max(used) <= number


def test_no_benchmark_sets_a_rivals_threads_by_its_own_number():
    for path in (ROOT / "benchmarks").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "n_jobs=2" not in text, path.name
        for name in ("LGBMClassifier(", "RandomForestClassifier("):
            assert text.count(name) == text.count(f"rival({name}") + text.count(f"rival(lightgbm.{name}"), path.name


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="the machine does not count its CPU time")
def test_work_of_another_process_is_seen_and_our_own_is_not():
    with subprocess.Popen([sys.executable, "-c", BUSY]) as other:
        start, before = machine.Moment.now(), cpu_seconds(other.pid)
        while (theirs := cpu_seconds(other.pid) - before) < 0.5:
            pass  # our own work
        now = machine.Moment.now()
        seen = start.others()
        other.kill()
    assert seen * (now.wall - start.wall) > theirs - 0.1  # /proc/stat counts in hundredths
    assert seen * (now.wall - start.wall) < now.machine - start.machine - (now.cpu - start.cpu) + 0.1


@pytest.mark.parametrize(("others", "free"), [(None, 4), (0.1, 4), (1.2, 3), (3.9, 1), (7.0, 1)])
def test_the_threads_are_the_cores_that_are_free(others, free, monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    assert machine.free_threads(others) == free


def test_the_line_below_a_table_marks_a_busy_machine():
    assert machine.load_note(0.02, 0.0, 0.01) == "other processes used 0.02, 0.00, 0.01 cores"
    assert machine.load_note(0.02, 1.3, 0.01).startswith("**the machine was not idle**")
    assert machine.load_note(None, 0.0, 0.0).startswith("load average")


def test_a_row_shows_wall_and_cpu_time_and_compares_one():
    ours, theirs = np.array([1.0, 3.0]), np.array([2.0, 2.0])
    assert show(theirs) == "2.00 s (CPU 2.00 s)"
    assert faster("fit", ours, theirs, 1, "forest").ratio == "2.0×"
    row = within("fit", ours, theirs, 1, "forest on 2 threads", CPU)
    assert (row.ratio, row.met, row.theirs) == ("1.50×", False, "forest on 2 threads 2.00 s (CPU 2.00 s)")


def test_both_works_are_timed_by_both_clocks():
    ran = []
    pair = alternately(lambda: ran.append("ours"), lambda: ran.append("theirs"), 2)
    assert ran == ["ours", "theirs"] * 3
    assert [one.shape for one in pair] == [(2,), (2,)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder of one small table and one of more than 5,000 rows, of a number and a category."""
    rng = np.random.default_rng(0)
    lines = ["name\tfile\trows\tcolumns\ttarget\tcategorical_columns"]
    for name, n in (("small", 50), ("larger", 5_050)):
        y = rng.integers(0, 2, n)
        cells = zip(rng.normal(2 * y), rng.integers(0, 3, n), y, strict=True)
        rows = "".join(f"{x:.3f},{kind},{'ab'[label]}\n" for x, kind, label in cells)
        (tmp_path / f"{name}.csv").write_text(f"x,kind,y\n{rows}")
        lines.append(f"{name}\t{name}.csv\t{n}\t3\ty\tkind")
    (tmp_path / "INDEX.tsv").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("POSTERIORI_DATA", str(tmp_path))
    return tmp_path


def run(*arguments, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["larger_tables", *map(str, arguments)])
    larger_tables.main()


def test_models_are_measured_at_different_times_on_equal_splits(folder, monkeypatch, capsys):
    keep = folder / "scores.json"
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(larger_tables, "SPLITS", 1)
    run("--keep", keep, "--models", "random forest", monkeypatch=monkeypatch)
    first = json.loads(keep.read_text())
    assert list(first) == ["larger"]
    assert "pool" not in capsys.readouterr().out.splitlines()[-3]
    run("--keep", keep, "--models", "pool", monkeypatch=monkeypatch)
    both = json.loads(keep.read_text())
    assert both["larger"]["random forest"] == first["larger"]["random forest"]
    assert both["larger"]["pool"]["0"]["threads"] == 1
    assert both["larger"]["pool"]["0"]["loss"] < both["larger"]["random forest"]["0"]["loss"]
    assert "The log-loss of the pool is below that of random forest on 1 of 1 tables." in capsys.readouterr().out


def test_a_model_stopped_on_a_split_is_left_out_and_named(folder, monkeypatch, capsys):
    keep = folder / "scores.json"
    monkeypatch.chdir(ROOT)
    run("--keep", keep, "--models", "random forest", "--limit", "0.01", monkeypatch=monkeypatch)
    assert list(json.loads(keep.read_text())["larger"]["random forest"]) == ["0"]
    assert "random forest: 1 thread, stopped by the limit of time on larger." in capsys.readouterr().out


def test_the_pool_meets_each_rival_on_the_splits_of_both():
    def scored(*losses):
        one = {"fit": [2.0, 1.0], "predict": [1.0, 0.5], "threads": 2, "others": 0.0}
        return {str(split): one | {"loss": loss} for split, loss in enumerate(losses)}

    scores = {
        "first": {"pool": scored(0.2, 0.2, 0.8), "LightGBM": scored(0.3, 0.3, 0.3), "CatBoost": scored(0.3)},
        "second": {"pool": scored(0.2, 0.2, 0.2), "LightGBM": scored(0.3, 0.3, 0.3)},
    }
    text = larger_tables.by_table(scores)
    assert "that of LightGBM on 1 of 2 tables; that of CatBoost on 1 of 1 tables." in text
    rows = text.splitlines()
    assert "**0.3000** (3.0 s, CPU 1.5 s, 1 of 3 splits) |" in rows[2]
    assert rows[3] == "| second | **0.2000** (3.0 s, CPU 1.5 s) | 0.3000 (3.0 s, CPU 1.5 s) | – |"
    assert "pool: 2 threads; LightGBM: 2 threads; CatBoost: 2 threads." in text
