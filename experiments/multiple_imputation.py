"""Measure multiple imputation by a joint model: how many 95 % intervals of simulated tables hold the truth.

Usage: python -m experiments.multiple_imputation --output FILE [--tables N] [--rows N …] [--methods NAME …]
                                                 [--beside FILE]

A simulated table has a normal x, and four columns that depend on it alone: "normal", x and noise; "gamma", a gamma of
shape 2 with the mean exp(x/2); "counts", Poisson with the mean exp((1 + x)/2); and "kind", a category. Gaps are "at
random", 30 % of all cells, or "by x": x is complete, and cells of the other columns are missing where x is large rather
than where it is small, also about 30 % of them. From five imputed tables, Rubin's rules estimate the mean of each
number, its slope on x by least squares with robust errors, and the share of a category. Intervals are those of
Student's t, with the degrees of freedom of Barnard and Rubin.

Bias is the mean difference to the estimate of the table before it had gaps, in standard errors of the latter. --output
names a file of JSON lines; what it has is not measured again, so that --tables can be raised later. miceforest is left
out where it is not installed, or LightGBM is too new for it to match values.

References: Rubin, Multiple Imputation for Nonresponse in Surveys (1987); Barnard & Rubin, Small-sample degrees of
freedom with multiple imputation, Biometrika 86 (1999).
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

import numpy as np
import polars as pl
from scipy.special import expit
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

import posteriori as po
from experiments.joint import Line, methods_left
from experiments.joint_law import read_lines, warm_up
from experiments.page import markdown_table

M = 5  # imputed tables
SHARE = 0.3  # of missing cells
GAPS = ("at random", "by x")
ROWS = (200, 1000)
LEVEL = 0.95
KINDS = ("a", "b")
NUMBERS = ("normal", "gamma", "counts")
TRUTH = {
    "mean of normal": 0.0,
    "slope of normal": 1.0,
    "mean of gamma": float(np.exp(1 / 8)),
    "slope of gamma": float(np.exp(1 / 8) / 2),
    "mean of counts": float(np.exp(5 / 8)),
    "slope of counts": float(np.exp(5 / 8) / 2),  # the covariance with x is the mean of the derivative (Stein)
    "share of kind": float(norm.expect(lambda x: expit(x - 1.0))),
}


def simulate(n: int, seed: int) -> pl.DataFrame:
    """Return a table of n rows without gaps."""
    rng = np.random.default_rng([n, seed])
    x = rng.normal(size=n)
    return pl.DataFrame(
        {
            "x": x,
            "normal": x + rng.normal(size=n),
            "gamma": rng.gamma(2.0, np.exp(x / 2.0) / 2.0),
            "counts": rng.poisson(np.exp((1.0 + x) / 2.0)),
            "kind": np.where(rng.random(n) < expit(x - 1.0), *KINDS).tolist(),
        }
    )


def with_gaps(frame: pl.DataFrame, gaps: str, seed: int) -> pl.DataFrame:
    """Return a table with cells missing completely at random, or at random given x."""
    rng = np.random.default_rng([len(frame), seed, 1])
    by_x = gaps == "by x"
    probability = expit(1.5 * frame["x"].to_numpy() - 1.2) if by_x else SHARE
    return frame.with_columns(
        pl.when(pl.Series(rng.random(len(frame)) < probability)).then(None).otherwise(pl.col(name)).alias(name)
        for name in frame.columns
        if not (by_x and name == "x")
    )


# Methods -----------------------------------------------------------------------------------------------------------


def by_joint_model(table: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the tables that a joint model draws."""
    model = po.JointModel(n_jobs=1).fit(table)
    return [model.impute(table, method="joint", draw=True, random_state=i) for i in range(M)]


def by_iterative_imputer(table: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the tables that scikit-learn draws; the category is 0 or 1, and what is drawn of it is not rounded.

    Rounded draws would bias its share (Horton, Lipsitz & Parzen, The American Statistician 57, 2003).
    """
    cells = table.with_columns(pl.col("kind") == KINDS[0]).cast(pl.Float64)
    drawn = (IterativeImputer(sample_posterior=True, random_state=i).fit_transform(cells.to_numpy()) for i in range(M))
    return [pl.DataFrame(one, table.columns, orient="row") for one in drawn]


def by_miceforest(table: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the tables that miceforest draws by matched values."""
    import miceforest
    import pandas

    cells = {name: table[name].cast(pl.Float64).to_numpy() for name in table.columns if name != "kind"}
    cells["kind"] = pandas.Categorical(table["kind"].to_list(), KINDS)
    kernel = miceforest.ImputationKernel(pandas.DataFrame(cells), num_datasets=M, random_state=0)
    kernel.mice(5, num_threads=1, verbosity=-1)
    drawn = [kernel.complete_data(i) for i in range(M)]
    return [pl.DataFrame({name: one[name].to_list() for name in table.columns}) for one in drawn]


METHODS: dict[str, Callable[[pl.DataFrame], list[pl.DataFrame]]] = {
    "complete rows": lambda table: [table.drop_nulls()],
    "joint": by_joint_model,
    "iterative": by_iterative_imputer,
    "miceforest": by_miceforest,
}
NO_GAPS = "no gaps"
MATCHES_BEFORE = (4, 7)  # LightGBM has since changed a private method by which miceforest 6.0.5 matches values
_PACKAGES = dict.fromkeys(METHODS, "posteriori") | {"miceforest": "miceforest"}


# Estimates ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """An estimate with its squared standard error, and the degrees of freedom of its t distribution."""

    value: float
    variance: float
    freedom: float

    @property
    def half_width(self) -> float:
        """Half of the width of the 95 % interval."""
        return float(student.ppf((1.0 + LEVEL) / 2.0, self.freedom) * np.sqrt(self.variance))


def mean_of(values: np.ndarray) -> Estimate:
    """Return the mean."""
    return Estimate(float(values.mean()), float(values.var(ddof=1)) / len(values), len(values) - 1.0)


def slope_of(x: np.ndarray, y: np.ndarray) -> Estimate:
    """Return the slope of y on x by least squares, with errors that hold for any variance of y (HC3)."""
    x = x - x.mean()
    square = float(x @ x)
    slope = float(x @ y) / square
    residual = (y - y.mean() - slope * x) / (1.0 - 1.0 / len(x) - x**2 / square)
    return Estimate(slope, float(x**2 @ residual**2) / square**2, len(x) - 2.0)


def estimates_of(table: pl.DataFrame) -> dict[str, Estimate]:
    """Return what one table without gaps estimates."""
    found = {f"mean of {name}": mean_of(table[name].to_numpy().astype(float)) for name in NUMBERS}
    found |= {f"slope of {name}": slope_of(table["x"].to_numpy(), table[name].to_numpy()) for name in NUMBERS}
    kind = table["kind"]
    share = kind if kind.dtype.is_numeric() else kind == KINDS[0]
    return found | {"share of kind": mean_of(share.cast(pl.Float64).to_numpy())}


def pooled(estimates: Sequence[Estimate]) -> Estimate:
    """Return the estimate of several imputed tables by Rubin's rules, with the degrees of Barnard and Rubin."""
    if len(estimates) == 1:
        return estimates[0]
    m, complete = len(estimates), estimates[0].freedom
    within = float(np.mean([one.variance for one in estimates]))
    between = (1.0 + 1.0 / m) * float(np.var([one.value for one in estimates], ddof=1))
    missing = between / (within + between)  # the share of the variance that is due to gaps
    observed = (complete + 1.0) / (complete + 3.0) * complete * (1.0 - missing)
    freedom = 1.0 / (missing**2 / (m - 1.0) + 1.0 / observed)
    return Estimate(float(np.mean([one.value for one in estimates])), within + between, freedom)


def methods_that_run(names: Sequence[str], done: set[str]) -> list[str]:
    """Return the methods that are named, not measured, and installed in a version that runs."""
    found = methods_left({name: package for name, package in _PACKAGES.items() if name in names}, done)
    if "miceforest" in found and tuple(map(int, version("lightgbm").split(".")[:2])) >= MATCHES_BEFORE:
        found.remove("miceforest")
    return found


def measure(output: Path, n_tables: int, rows: Sequence[int], methods: Sequence[str]) -> None:
    """Measure what the file does not have, the settings of each simulated table in turn."""
    done: dict[tuple[int, int, str], set[str]] = {}
    for line in read_lines(output):
        done.setdefault((line["table"], line["rows"], line["gaps"]), set()).add(line["method"])
    warm_up()
    settings = [(seed, n, gaps) for seed in range(n_tables) for n in rows for gaps in GAPS]
    for seed, n, gaps in settings:
        frame = simulate(n, seed)
        without = estimates_of(frame)
        table = with_gaps(frame, gaps, seed)
        for method in methods_that_run(methods, done.get((seed, n, gaps), set())):
            begun = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of EM, and of chains, that have few steps
                drawn = METHODS[method](table)
            seconds = time.process_time() - begun
            each = [estimates_of(one) for one in drawn]
            about = {"table": seed, "rows": n, "gaps": gaps, "method": method, "seconds": seconds}
            lines = [
                about | {"of": name, "no_gaps": asdict(full), "found": asdict(pooled([one[name] for one in each]))}
                for name, full in without.items()
            ]
            with output.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)


# Tables of figures -------------------------------------------------------------------------------------------------


def scores_of(lines: Sequence[Line], figure: str = "found") -> dict[str, float]:
    """Return the share of intervals that hold the truth, the bias and the width beside those without gaps."""
    full = [Estimate(**line["no_gaps"]) for line in lines]
    found = [Estimate(**line[figure]) for line in lines]
    holds = [abs(one.value - TRUTH[line["of"]]) <= one.half_width for one, line in zip(found, lines, strict=True)]
    pairs = list(zip(found, full, strict=True))
    return {
        "coverage": float(np.mean(holds)),
        "bias": float(np.mean([(one.value - base.value) / np.sqrt(base.variance) for one, base in pairs])),
        "width": float(np.mean([one.half_width / base.half_width for one, base in pairs])),
    }


def summary(lines: Sequence[Line]) -> str:
    """Return a line per setting and method, and then one per estimate: coverage, bias and width of the intervals."""
    methods = [name for name in METHODS if any(line["method"] == name for line in lines)]
    groups = {
        f"{gaps}, {n} rows": [line for line in lines if (line["gaps"], line["rows"]) == (gaps, n)]
        for gaps in GAPS
        for n in sorted({line["rows"] for line in lines})
    }
    groups |= {
        f"{of}, {gaps}": [line for line in lines if (line["gaps"], line["of"]) == (gaps, of)]
        for of in TRUTH
        for gaps in GAPS
    }
    found = []
    for title, own in groups.items():
        by_method = [[line for line in own if line["method"] == name] for name in methods]
        first = by_method[0]
        if not all(by_method):
            continue
        cells = [f"{scores_of(first, 'no_gaps')['coverage']:.2f}"]
        for some in by_method:
            scores = scores_of(some)
            cells.append(f"{scores['coverage']:.2f}, {scores['bias']:+.2f}, {scores['width']:.2f}")
        found.append([f"{title} ({len(first)})", *cells])
    seconds = [f"{np.mean([line['seconds'] for line in lines if line['method'] == name]):.2f}" for name in methods]
    found.append(["CPU s of a table", "–", *seconds])
    return markdown_table(["coverage, bias, width", NO_GAPS, *methods], found)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--tables", type=int, default=8, metavar="N", help="simulated tables of each setting")
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS, metavar="N")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--beside", type=Path, metavar="FILE", help="scores of an earlier state")
    asked = parser.parse_args()
    measure(asked.output, asked.tables, asked.rows, asked.methods)
    for path in (asked.beside, asked.output):
        if path is not None:
            print(f"\n{path.name}\n\n{summary(read_lines(path))}")


if __name__ == "__main__":
    main()
