"""Ctrl-C and SIGTERM end a command soon, whatever it does, and leave no file, no copy and no child process."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.reading.dialects import spooled
from posteriori.support.atomic_write import write_whole
from posteriori.support.leftovers import remove_leftovers

pytestmark = pytest.mark.skipif(os.name == "nt", reason="has no signals to send to one process")
# The process says when a function of the library is called first, so that no test has to guess how long that takes.
# What started the tests may have them, and so their children, ignore Ctrl-C.
START = """
import importlib, signal, sys
from posteriori.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
module, _, name = sys.argv.pop(1).rpartition(".")
module = importlib.import_module(module)
work = getattr(module, name)
def begun(*arguments, **options):
    print("begun", flush=True)
    return work(*arguments, **options)
setattr(module, name, begun)
sys.exit(main())
"""
EM = ["--model", "nb", "--set", "unlabelled=learn", "--set", "components_per_class=3", "--set", "max_iter=10000000"]
SIGNALS = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated"), signal.SIGHUP: (129, "closed")}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    return tmp_path


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Return a folder with files on which commands work for minutes, and with a model."""
    position = tmp_path_factory.mktemp("rows")
    rng, n = np.random.default_rng(0), 200_000
    y = rng.integers(0, 3, n)
    frame = pl.DataFrame({f"x{j}": rng.normal(size=n) for j in range(8)}).with_columns(
        k=rng.integers(0, 9, n), y=pl.Series(["low", "mid", "high"]).gather(y)
    )
    frame.write_parquet(position / "t.parquet")
    labelled = pl.when(pl.int_range(pl.len()) % 9 == 0).then(pl.col("y"))
    frame.select("x0", "k", labelled.alias("y")).write_parquet(position / "few.parquet")
    po.save(po.NaiveBayes().fit(frame.head(1000), "y"), position / "m.posteriori")
    return position


def begun(at, *arguments, **options):
    """Start a command as a process of its own, and return it once it has come to a function."""
    command = [sys.executable, "-c", START, at, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    assert process.stdout.readline() == "begun\n", process.communicate()
    return process


def children_of(process):
    """Return the processes that a process has started, where the system lists them."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return []


def is_running(process):
    """Return whether a process goes on; one that has ended without notice of its parent does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def ends(process, number, before=()):
    """Send a signal; the process ends long before its work would, and leaves the folders as they were."""
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    code, word = SIGNALS[number]
    assert process.returncode == code, (out, err)
    assert err.splitlines()[-1].startswith("error: ")
    assert word in err.splitlines()[-1]
    assert "Traceback" not in err
    assert [path.name for path in Path().iterdir()] == [*before]
    assert os.listdir(tempfile.gettempdir() if "TMPDIR" not in os.environ else os.environ["TMPDIR"]) == []


BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@pytest.mark.parametrize("number", [signal.SIGTERM, *SIGNALS], ids=str)
def test_em_ends(rows, number):
    process = begun("posteriori.learning.fit.em_loop", "fit", rows / "few.parquet", "--target", "y", *EM)
    ends(process, number)


@pytest.mark.parametrize(
    ("at", "number"),
    [
        ("posteriori.learning.fold_fits.as_completed", signal.SIGINT),
        ("posteriori.reading.files.resolve_types", signal.SIGTERM),
        ("posteriori.pool.fit.read_pool_rows", signal.SIGINT),
        ("posteriori.pool.held_out_sample.fit_pool", signal.SIGTERM),
    ],
)
def test_the_fit_of_a_pool_ends(rows, at, number):
    ends(begun(at, "fit", rows / "t.parquet", rows / "t.parquet", "--target", "y"), number)


@BOTH
def test_the_growth_of_a_forest_ends(rows, number):
    command = ["fit", rows / "t.parquet", "--target", "y", "--model", "forest"]
    ends(begun("posteriori.densities.tree_growing.ThreadPoolExecutor", *command), number)


@BOTH
def test_predictions_end_and_the_file_before_stays(rows, number):
    Path("p.parquet").write_text("before")
    command = ["predict", rows / "m.posteriori", *[rows / "t.parquet"] * 60, "--proba", "--force", "-o", "p.parquet"]
    ends(begun("posteriori.scoring.files._write_columns", *command), number, before=["p.parquet"])
    assert Path("p.parquet").read_text() == "before"


@BOTH
def test_no_copy_of_a_table_is_left(number):
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as rows:
        command = ["fit", "-", "--target", "y"]
        process = begun("posteriori.reading.dialects.spooled", *command, stdin=reading)
        os.close(reading)
        rows.write(b"x,y\n" + b"1,a\n" * 100_000)  # more than a pipe holds: the copy has begun
        rows.flush()
        ends(process, number)


def test_an_ignored_ctrl_c_stays_ignored():
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); from posteriori.cli import main; main()"
    code += "; sys.exit(signal.getsignal(signal.SIGINT) is not signal.SIG_IGN)"
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, check=False)
    assert done.returncode == 0


FIRST = """
import os, signal, threading
from posteriori.cli import interrupts, main
{change}
main()
"""
TWO = """
signal.signal(signal.SIGINT, signal.default_int_handler)
def kill(*_):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(0.01)  # Python handles the signal here
    finally:
        for second in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), second)
            threading.Event().wait(0.01)
"""
PLACES = {
    "before the command": "import posteriori.cli as c; c._run = kill",
    "while the thread that waits for signals starts": "threading.Thread.start = kill",
    "during the clean-up": """
import posteriori.cli as c, posteriori.support.leftovers as l
first = lambda *_: (os.kill(os.getpid(), signal.SIGTERM), threading.Event().wait(0.01))
c._run, l.remove_leftovers = first, kill
""",
    "while stderr is given back": """
from posteriori.cli import messages
dup2, calls = os.dup2, []
def kill_second(*fds):
    calls.append(fds)
    kill() if len(calls) == 2 else dup2(*fds)
os.dup2 = kill_second
""",
    "in another thread, while the first one closes stderr": """
import posteriori.cli as c, sys
sys.stderr = open(os.dup(2), "w")
os.close(sys.stderr.fileno())
c._run = kill
""",
}


@pytest.mark.parametrize("place", PLACES)
def test_only_the_first_signal_is_obeyed_wherever_it_comes(place):
    code = FIRST.format(change=TWO + PLACES[place])
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (143, "error: terminated\n")


def test_a_full_pipe_that_nobody_reads_does_not_keep_a_command():
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for n_bytes in (4096, 1):
        with contextlib.suppress(BlockingIOError):
            while os.write(writing, bytes(n_bytes)):
                pass
    os.set_blocking(writing, True)
    code = FIRST.format(change="import posteriori.cli as c; c._run = lambda _: os.kill(os.getpid(), signal.SIGTERM)")
    done = subprocess.run([sys.executable, "-c", code], stderr=writing, timeout=60, check=False)
    assert done.returncode == 143
    os.close(reading)
    os.close(writing)


def test_a_command_in_another_thread_leaves_signals_alone():
    code = "import signal, threading; from posteriori.cli import main; found = []; before = signal.getsignal(2)\n"
    code += "thread = threading.Thread(target=lambda: found.append(main())); thread.start(); thread.join()\n"
    code += "assert found == [0]; assert signal.getsignal(2) is before"
    subprocess.run([sys.executable, "-c", code, "--version"], check=True)


def test_a_temporary_folder_is_noted_before_it_is_made(folder, monkeypatch):
    def make_and_end(path, mode=0o777):
        mkdir(path, mode)
        raise KeyboardInterrupt

    mkdir = os.mkdir
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "temporary"))
    monkeypatch.setattr(os, "mkdir", make_and_end)
    for make in (lambda: spooled(io.BytesIO()), lambda: write_whole(Path(os.devnull), b"")):
        with pytest.raises(KeyboardInterrupt):
            make()
    assert os.listdir(folder / "temporary")
    remove_leftovers()
    assert os.listdir(folder / "temporary") == []
