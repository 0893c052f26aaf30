"""Odd options and values of every command, on a good small table and good models."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from fuzz.cells import NAMES, Rng, pick
from fuzz.commands import run_command, strict_inside
from fuzz.target import Target

_NUMBERS = (
    "0", "1", "2", "3", "5", "-1", "-0", "0.5", "1.5", "nan", "inf", "-inf", "1e308", "1e400", "1e-320", "", " ", "x",
    "99999999999999999999", "-99999999999999999999", "0x10", "1_000", "١", "½", "1,2", "2..3", "3..2", "1..", ",",
    "1e3",
    "+2", "2 ", "true", "learn", "held-out", "held_out", "None", "0.999999999", "1e-9",
)  # fmt: skip
_COLUMNS = (
    "x", "n", "c", "y", "gaps", "id", "x,n", "c,", ",", "", " ", "x,x", "nothing", "X", "x,nothing", "x;n", "y,x",
    "c,y",
    "when", "when.month", "*", "^.*$", "x,n,c,gaps,id", "-1", "0", *NAMES[:40],
)  # fmt: skip
_MODELS = ("nb", "lda", "qda", "rda", "tan", "chow-liu", "kdb", "aode", "auto", "svm", "", "NB", "nb,lda", "pool")
_TABLES = (
    "t.csv", "t.csv", "t.csv", "t.csv", "u.csv", "t.parquet", "none.csv", "folder", "empty", "t", "nb.posteriori",
    "", "*.csv",
    "t.*", "none*.csv", "t.csv.gz", "-", "..", "t.xlsx", "penguins.csv", "\x00",
)  # fmt: skip
_STORED = (
    "nb.posteriori", "nb.posteriori", "lda.posteriori", "tan.posteriori", "mixture.posteriori", "t.csv", "none",
    "folder",
    "",
    "cut.posteriori",
)  # fmt: skip
_OUTPUTS = (
    "out.csv", "out.parquet", "out.ndjson", "out.csv.gz", "out.posteriori", "out", "t.csv", "nb.posteriori", "folder",
    "none/out.csv", "", "out.xlsx", "out.html", "out.png", "out.csv.zst", "x" * 300, ".", "out\x00.csv",
    "t.csv/out",
    "out.arrow", "out.tsv", "sealed/out.csv",
)  # fmt: skip
_DATES = ("parts", "ignore", "month", "days,year", "month,", "x", "", ",", "parts,days", "seconds")
_ODD = ("--json", "--help", "--nothing", "-z", "--", "extra", "--version", "--proba", "--model", "--target")
_PLACES = {"TABLE": _TABLES, "MODEL": _STORED}

# Of each command: its arguments, the options that keep it short, and the others with their values.
_COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], dict[str, tuple[str, ...]]]] = {
    "fit": (
        ("TABLE",),
        ("--target", "y", "--folds", "2", "--model", "nb"),
        {
            "--target": _COLUMNS,
            "--categorical": _COLUMNS,
            "--poisson": _COLUMNS,
            "--binned": _COLUMNS,
            "--ignore": _COLUMNS,
            "--keep": (*_COLUMNS, "all"),
            "--dates": _DATES,
            "--model": _MODELS,
            "--missing": ("informative", "at-random", "", "x"),
            "--weights": ("conditional", "", "x"),
            "--output": _OUTPUTS,
            "--folds": _NUMBERS,
            "--unlabelled": ("ignore", "learn", "", "x"),
            "--unlabelled-weight": _NUMBERS,
            "--components-per-class": (*_NUMBERS, "a=2", "a=2,b=1", "a=", "=2", "z=2", "a=2,a=3", "a=0", "a=99", "2,3"),
            "--label-noise": _NUMBERS,
            "--seed": _NUMBERS,
        },
    ),
    "predict": (("MODEL", "TABLE"), (), {"--output": _OUTPUTS}),
    "evaluate": (("MODEL", "TABLE"), (), {"--target": _COLUMNS}),
    "explain": (("MODEL", "TABLE"), (), {"--row": _NUMBERS}),
    "sample": (
        ("MODEL",),
        ("-n", "3"),
        {"-n": tuple(n for n in _NUMBERS if len(n) < 9), "--output": _OUTPUTS, "--seed": _NUMBERS},
    ),
    "show": (("MODEL",), (), {}),
    "cv": (
        ("TABLE",),
        ("--target", "y", "--folds", "2", "--models", "nb"),
        {
            "--target": _COLUMNS,
            "--models": ("nb", "lda,nb", "tan", "svm", "", ",", "nb,nb", "nb,"),
            "--folds": _NUMBERS,
            "--groups": _COLUMNS,
            "--keep": (*_COLUMNS, "all"),
            "--dates": _DATES,
            "--categorical": _COLUMNS,
            "--ignore": _COLUMNS,
            "--seed": _NUMBERS,
        },
    ),
    "cluster": (
        ("TABLE",),
        ("-k", "2", "--covariance", "diagonal"),
        {
            "-k": tuple(n for n in _NUMBERS if n != "1_000"),
            "--drop": _COLUMNS,
            "--keep": (*_COLUMNS, "all"),
            "--dates": _DATES,
            "--categorical": _COLUMNS,
            "--covariance": ("full", "tied", "spherical", "", "x"),
            "--output": _OUTPUTS,
            "--assign": _OUTPUTS,
            "--seed": _NUMBERS,
        },
    ),
    "merge": (("MODEL", "MODEL"), ("--out", "merged.posteriori"), {"--out": _OUTPUTS}),
    "sql": (
        ("MODEL",),
        (),
        {"--table": (*_COLUMNS, "(select * from t)", "a; drop table b"), "--columns": _COLUMNS, "--dialect": (
            "duckdb", "sqlite", "postgres", "mysql", "bigquery", "", "x", "tsql")},
    ),
    "compare": (
        ("TABLE",),
        ("--target", "y", "--models", "nb", "--sizes", "10", "--repeats", "1"),
        {
            "--target": _COLUMNS,
            "--sizes": _NUMBERS,
            "--models": ("nb", "svm", "", ","),
            "--seed": _NUMBERS,
            "--ignore": _COLUMNS,
            "--categorical": _COLUMNS,
            "--keep": (*_COLUMNS, "all"),
            "--dates": _DATES,
            "--plot": tuple(name for name in _OUTPUTS if not name.endswith(".png")),
        },
    ),
}  # fmt: skip


@cache
def _ground() -> Path:
    """Return a folder, made once a process, of good tables and models."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-options-"))
    rng = np.random.default_rng(0)
    n = 30
    y = ["a", "b"] * (n // 2)
    frame = pl.DataFrame(
        {
            "x": rng.normal(size=n).tolist(),
            "n": rng.poisson(2.0, n).tolist(),
            "c": [("u", "v", "w")[k] for k in rng.integers(0, 3, n)],
            "gaps": [None if k % 4 == 0 else float(k % 7) for k in range(n)],
            "id": list(range(n)),
            "when": [f"2024-{1 + k % 12:02}-{1 + 7 * k % 28:02}" for k in range(n)],
            "y": y,
        }
    )
    some = pl.Series("y", [None if k % 5 == 0 else label for k, label in enumerate(y)])
    frame.write_csv(folder / "t.csv")
    frame.write_parquet(folder / "t.parquet")
    frame.with_columns(some).write_csv(folder / "u.csv")
    (folder / "empty").touch()
    (folder / "folder").mkdir()
    with strict_inside(folder):
        for model in ("nb", "lda", "tan"):
            output = f"{model}.posteriori"
            run_command(["fit", "t.csv", "--target", "y", "--model", model, "--folds", "2", "--output", output])
        run_command(["cluster", "t.csv", "-k", "2", "--drop", "y,id", "--output", "mixture.posteriori"])
    (folder / "cut.posteriori").write_bytes((folder / "nb.posteriori").read_bytes()[:-40])
    return folder


def _arguments(rng: Rng) -> list[str]:
    name = pick(rng, (*_COMMANDS, "fit", "fit", "fit", "cv"))
    positions, usual, options = _COMMANDS[name]
    good = {"TABLE": "t.csv" if rng.random() < 0.7 else "u.csv", "MODEL": pick(rng, _STORED[:4])}
    found = [name, *(good[position] if rng.random() < 0.85 else pick(rng, _PLACES[position]) for position in positions)]
    given = dict(zip(usual[::2], usual[1::2], strict=True))
    more: list[str] = []
    for _ in range(int(rng.integers(0, 4)) if options else 0):
        option = pick(rng, list(options))
        value = pick(rng, options[option])
        if option in given and rng.random() < 0.8:
            given[option] = value
        else:
            more += [f"{option}={value}"] if option.startswith("--") and rng.random() < 0.5 else [option, value]
    found += [part for pair in given.items() for part in pair if rng.random() < 0.99]
    found += more
    if rng.random() < 0.15:
        found.insert(int(rng.integers(len(found) + 1)), pick(rng, _ODD))
    return found


def run(rng: Rng, folder: Path) -> str:
    """Run a command with odd options."""
    shutil.copytree(_ground(), folder, dirs_exist_ok=True)
    with strict_inside(folder), warnings.catch_warnings():
        return run_command(_arguments(rng))


TARGET = Target("options", run)
