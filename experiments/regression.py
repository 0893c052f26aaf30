"""Compare the regressor with boosting, forests and ridge regression on tables whose target is a number.

Usage: python -m experiments.regression --output FILE [--methods NAME …] [--again NAME …] [--tables NAME …] [--splits N]
                                        [--hidden SHARE …]
       python -m experiments.regression --summary FILE [--methods NAME …]
       python -m experiments.regression --page FILE

Ten tables are for tuning defaults, ten for the report. Each is split three times into 70 % of its rows to learn from
and 30 % to test by. --output names a file of JSON lines, one for each table, split, method and share of hidden cells.
What it has without an error is not measured again, except for the methods named by --again: the rivals run once.
--methods posteriori measures the regressor alone, --methods rivals all but it. With --hidden, cells of the test rows
are hidden at random too, and some rivals are also trained with hidden cells. The libraries of the rivals are in the
`bench` extra.

Scores: CRPS is twice the mean pinball loss over the levels 0.01 … 0.99, the same for every method. RMSE is that of the
mean. Coverage and width are those of the interval between the levels 0.05 and 0.95. Seconds are CPU seconds of the fit
and of the prediction, in one thread; each method first meets a few rows, so that imports and compiling do not count.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

import numpy as np
import polars as pl

import posteriori as po
from experiments.page import DOCS, markdown_table, replace_block
from experiments.real_tables import data_folder, read_index
from experiments.regression_rivals import (
    BOOSTED_TREES,
    HIDDEN,
    LEVELS,
    RIVALS,
    TRAINED_WITH_HIDDEN_CELLS,
    Fit,
    Forecast,
    Predict,
    hide,
)

POSTERIORI = "posteriori"
MOST_ROWS = 4000
SPLITS = 3
TEST_SHARE = 0.3
SEED = 0
FEW_ROWS = 60
FIGURES = ("crps", "rmse", "coverage", "width", "fit_seconds", "predict_seconds")
# Columns of tables of classes that serve as the target of the report; the class is a feature. Why we chose each:
REPORT = {
    "german": "credit_amount",  # thirteen categorical columns, a long tail
    "titanic_kaggle": "fare",  # gaps, a very long tail, prices that repeat
    "penguins": "body_mass_g",  # few rows, a few clusters
    "adult": "age",  # categories with many levels, weak signal
    "telco_churn": "monthly_charges",  # almost fixed by the categories: sharp forecasts win
    "hmda": "pirat",  # one strong numeric column, outliers in both
    "eucalyptus": "Ht",  # gaps, numbers of very different scales
    "sick": "TSH",  # gaps in many columns, most rows near zero, a long tail
    "covertype_part": "Elevation",  # strong signal of many terms, a category of forty levels
    "colic": "packed_cell_volume",  # a quarter of the cells missing, few rows
}


@dataclass(frozen=True)
class NumericTable:
    """A table whose target is a number."""

    name: str
    X: pl.DataFrame
    y: np.ndarray


@dataclass(frozen=True)
class Score:
    """One line of the file: what a method scored on the test rows of one split, with a share of their cells hidden."""

    table: str
    split: int
    method: str
    hidden: float
    crps: float = float("nan")
    rmse: float = float("nan")
    coverage: float = float("nan")
    width: float = float("nan")
    fit_seconds: float = float("nan")
    predict_seconds: float = float("nan")
    error: str = ""

    @property
    def key(self) -> tuple[str, int, str, float]:
        """What the score is of."""
        return self.table, self.split, self.method, self.hidden


def tuning_targets(folder: Path) -> dict[str, str]:
    """Return the target of each table for tuning, by name."""
    lines = pl.read_csv(folder / "regression" / "INDEX.tsv", separator="\t")
    return dict(lines.select("table", "target").iter_rows())


def half_of(name: str) -> str:
    """Return whether a table is for tuning or for the report; the name of the latter has its target."""
    return "report" if ":" in name else "tuning"


def read_tables(folder: Path) -> Iterator[NumericTable]:
    """Read the twenty tables; at most 4,000 rows of each, and none whose target is missing."""
    for name, target in tuning_targets(folder).items():
        yield _table(name, pl.read_csv(folder / "regression" / f"{name}.csv", infer_schema_length=None), target)
    index = {line["name"]: line for line in read_index(folder)}
    for name, target in REPORT.items():
        line = index[name]
        rows = pl.read_csv(folder / line["file"], infer_schema_length=None)
        features = [column for column in rows.columns if column != line["target"]]
        categorical = {"all": features, "none": []}.get(
            line["categorical_columns"], line["categorical_columns"].split(";")
        )
        rows = rows.with_columns(pl.col(column).cast(pl.String) for column in [*categorical, line["target"]])
        yield _table(f"{name}: {target}", rows, target)


def _table(name: str, rows: pl.DataFrame, target: str) -> NumericTable:
    rows = rows.drop_nulls(target).with_columns(pl.col(pl.Boolean).cast(pl.String))
    if rows.height > MOST_ROWS:
        rows = rows[np.sort(np.random.default_rng(SEED).permutation(rows.height)[:MOST_ROWS])]
    return NumericTable(name, rows.drop(target), rows[target].cast(pl.Float64).to_numpy())


def crps(y: np.ndarray, quantiles: np.ndarray) -> float:
    """Return the mean of twice the pinball loss over the rows and the 99 levels."""
    error = y[:, None] - quantiles
    return float(2.0 * np.maximum(LEVELS * error, (LEVELS - 1.0) * error).mean())


def scores_of(y: np.ndarray, forecast: Forecast) -> dict[str, float]:
    """Return CRPS, RMSE, and the coverage and the mean width of the central 90 % interval."""
    low, high = (forecast.quantiles[:, np.flatnonzero(np.isclose(LEVELS, level))[0]] for level in (0.05, 0.95))
    return {
        "crps": crps(y, forecast.quantiles),
        "rmse": float(np.sqrt(np.mean((y - forecast.mean) ** 2))),
        "coverage": float(((low <= y) & (y <= high)).mean()),
        "width": float((high - low).mean()),
    }


def posteriori(X: pl.DataFrame, y: np.ndarray, copies: int = 1) -> Predict:
    """Fit the regressor of this library, at its defaults."""
    model = po.GenerativeRegressor().fit(X.with_columns(pl.Series("target", y)), "target")

    def predict(rows: pl.DataFrame) -> Forecast:
        return Forecast(np.asarray(model.predict_quantiles(rows, LEVELS)), np.asarray(model.predict(rows)))

    return predict


def methods(chosen: Sequence[str] | None, hidden: bool) -> dict[str, Fit]:
    """Return the fits by the names of the methods; "rivals" stands for all but ours.

    Raises
    ------
    ValueError
        If there is no method of a name: choose among those that the message lists.
    """
    rivals = RIVALS | (TRAINED_WITH_HIDDEN_CELLS if hidden else {})
    every = {POSTERIORI: posteriori} | rivals
    wanted = list(every) if not chosen else [one for name in chosen for one in (rivals if name == "rivals" else [name])]
    absent = set(wanted) - set(every)
    if absent:
        raise ValueError(f"no method {', '.join(sorted(absent))}; choose among rivals, {', '.join(every)}")
    return {name: every[name] for name in wanted}


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its children that ended."""
    return sum(os.times()[:4])


def measure(
    name: str, fit: Fit, table: NumericTable, split: int, shares: Sequence[float], warm_up: bool
) -> Iterator[Score]:
    """Fit once, and yield the score at each share of hidden cells, or one with the error of a library that fails."""
    order = np.random.default_rng(split).permutation(len(table.y))
    cut = round(TEST_SHARE * len(order))
    test, train = np.sort(order[:cut]), np.sort(order[cut:])
    absent = list(shares)
    try:
        if warm_up:
            fit(table.X[train[:FEW_ROWS]], table.y[train[:FEW_ROWS]], 1)(table.X[test[:FEW_ROWS]])
        begun = cpu_seconds()
        predict = fit(table.X[train], table.y[train], 1)
        fitted = cpu_seconds() - begun
        for share in tuple(absent):
            rng = np.random.default_rng(zlib.crc32(f"{table.name} {split} {share}".encode()))
            rows = hide(table.X[test], np.array(share), rng)
            begun = cpu_seconds()
            forecast = predict(rows)
            seconds = cpu_seconds() - begun
            found = scores_of(table.y[test], forecast)
            yield Score(table.name, split, name, share, **found, fit_seconds=fitted, predict_seconds=seconds)
            absent.remove(share)
    except Exception as error:  # of a library, on one table: the other scores are still wanted
        for share in absent:
            yield Score(
                table.name, split, name, share, error=f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            )


def read_scores(path: Path) -> dict[tuple[str, int, str, float], Score]:
    """Return the scores of a file by what they are of; a later line stands for an earlier one."""
    if not path.exists():
        return {}
    scores = [Score(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return {score.key: score for score in scores}


def measure_all(
    output: Path,
    fits: dict[str, Fit],
    tables: list[NumericTable],
    splits: int,
    shares: list[float],
    again: Sequence[str] = (),
) -> None:
    """Measure what the file lacks, the first split of all tables first, and add a line to it for each score."""
    known = {key for key, one in read_scores(output).items() if not one.error and one.method not in again}
    met: set[str] = set()
    for split in range(splits):
        for table in tables:
            for name, fit in fits.items():
                absent = [share for share in shares if (table.name, split, name, share) not in known]
                if not absent:
                    continue
                with output.open("a", encoding="utf-8") as lines:
                    for score in measure(name, fit, table, split, absent, warm_up=name not in met):
                        lines.write(json.dumps(vars(score)) + "\n")
                        what = score.error or f"CRPS {score.crps:.4g}  RMSE {score.rmse:.4g}  {score.fit_seconds:.1f} s"
                        print(f"{table.name}  {split}  {name}  {score.hidden:g}  {what}", flush=True)
                met.add(name)


def means(scores: list[Score]) -> dict[str, dict[str, dict[str, float]]]:
    """Return by table and method the mean of each figure, over the splits that all methods of the table have."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for table in dict.fromkeys(score.table for score in scores):
        of_table = [score for score in scores if score.table == table and not score.error]
        by_method: dict[str, dict[int, Score]] = {}
        for score in of_table:
            by_method.setdefault(score.method, {})[score.split] = score
        common = set.intersection(*(set(splits) for splits in by_method.values())) if by_method else set()
        for method, splits in by_method.items() if common else ():
            rows = [splits[split] for split in sorted(common)]
            figures = {name: float(np.mean([getattr(one, name) for one in rows])) for name in FIGURES}
            figures["seconds"] = figures["fit_seconds"] + figures["predict_seconds"]
            found.setdefault(table, {})[method] = figures | {"splits": len(rows)}
    return found


def ratios(found: dict[str, dict[str, float]], figure: str, others: Sequence[str]) -> dict[str, float]:
    """Return a figure of each method on one table, divided by the least among the others."""
    known = [found[name][figure] for name in others if name in found]
    least = min(known) if known else float("nan")
    return {name: figures[figure] / least for name, figures in found.items()}


def _block(title: str, values: dict[str, dict[str, float]], names: list[str], how: str, form: str) -> str:
    """Return a line per table, and one per half with the mean of a method over the tables where it has a figure."""

    def cells(row: dict[str, float]) -> list[str]:
        return [format(row[name], form) if name in row else "–" for name in names]

    lines = [[table, *cells(row)] for table, row in values.items()]
    for half in ("tuning", "report"):
        part = [row for table, row in values.items() if half_of(table) == half]
        mean = {}
        for name in names:
            column = np.array([row[name] for row in part if name in row])
            if len(column):
                mean[name] = float(np.exp(np.log(column).mean()) if how == "geometric" else column.mean())
        lines.append([f"**{how} mean, {half} ({len(part)})**", *cells(mean)])
    return f"{title}\n\n" + markdown_table(["table", *names], lines)


def summary(scores: list[Score]) -> str:
    """Return the figures of each method by table, and their means over the tables for tuning and for the report."""
    parts = []
    for share in sorted({score.hidden for score in scores}):
        # Without hidden cells, rivals trained with them are left out: they are measured on fewer splits.
        of_share = [one for one in scores if one.hidden == share and (share or not one.method.endswith(HIDDEN))]
        found = means(of_share)
        known = {name for of_table in found.values() for name in of_table}
        names = [name for name in (POSTERIORI, *RIVALS, *TRAINED_WITH_HIDDEN_CELLS) if name in known]
        rivals = [name for name in names if name != POSTERIORI]
        trees = [name for name in rivals if name.removesuffix(HIDDEN) in BOOSTED_TREES]
        relative = {
            "CRPS, divided by that of the best rival": ("crps", rivals),
            "RMSE, divided by that of the best boosted trees": ("rmse", trees),
        }
        counts = sorted({round(one["splits"]) for of_table in found.values() for one in of_table.values()})
        splits = "–".join(map(str, dict.fromkeys((counts[0], counts[-1])))) if counts else "0"
        parts.append(f"## {share:.0%} of the cells of the test rows hidden; splits that all methods have: {splits}")
        for title, (figure, others) in relative.items():
            values = {table: ratios(row, figure, others) for table, row in found.items()}
            parts.append(_block(title, values, names, "geometric", ".3f"))
        for title, figure, form in (("Coverage of the 90 % interval", "coverage", ".3f"), ("CPU", "seconds", ".2f")):
            values = {table: {name: one[figure] for name, one in row.items()} for table, row in found.items()}
            parts.append(_block(title, values, names, "arithmetic" if figure == "coverage" else "geometric", form))
    failed = [f"- {one.table}, split {one.split}, {one.method}: {one.error}" for one in scores if one.error]
    return "\n\n".join([*parts, *(["Failed:\n\n" + "\n".join(failed)] if failed else [])])


def of_tables(scores: list[Score]) -> str:
    """Return a line per table: our CRPS and RMSE beside those of the best rivals, coverage and CPU seconds."""
    found, lines, every = means(scores), [], []
    for table, row in found.items():
        ours, others = row[POSTERIORI], {name: one for name, one in row.items() if name != POSTERIORI}
        best = min(others, key=lambda name: others[name]["crps"])
        trees = min(others[name]["rmse"] for name in others if name in BOOSTED_TREES)
        figures = ours["crps"] / others[best]["crps"], ours["rmse"] / trees, ours["coverage"], ours["seconds"]
        every.append((half_of(table), figures))
        lines.append([table, best, *(format(one, form) for one, form in zip(figures, _FORMS, strict=True))])
    for half in ("tuning", "report"):
        figures = np.array([one for of_half, one in every if of_half == half])
        mean = [*np.exp(np.log(figures[:, :2]).mean(axis=0)), *figures[:, 2:].mean(axis=0)]
        cells = [format(one, form) for one, form in zip(mean, _FORMS, strict=True)]
        lines.append([f"**mean, {half}**", "", *cells])
    return markdown_table(["table", "best rival", "CRPS / best", "RMSE / best trees", "coverage", "CPU s"], lines)


_FORMS = (".3f", ".3f", ".3f", ".1f")


def of_methods(scores: list[Score]) -> str:
    """Return a line per method: means over all tables of CRPS and RMSE relative to the best rivals, and the rest."""
    found = means(scores)
    relative = {
        table: ratios(row, "crps", [name for name in row if name != POSTERIORI]) for table, row in found.items()
    }
    errors = {table: ratios(row, "rmse", [n for n in row if n in BOOSTED_TREES]) for table, row in found.items()}
    lines = []
    for name in (POSTERIORI, *RIVALS):
        crps, rmse = (np.exp(np.mean([np.log(one[name]) for one in of.values()])) for of in (relative, errors))
        others = [np.mean([row[name][key] for row in found.values()]) for key in ("coverage", "seconds")]
        figures = (crps, rmse, *others)
        lines.append([name, *(format(one, form) for one, form in zip(figures, _FORMS, strict=True))])
    return markdown_table(["method", "CRPS / best", "RMSE / best trees", "coverage", "CPU s"], lines)


def of_hidden(scores: list[Score]) -> str:
    """Return a line per method: our CRPS divided by its where cells are hidden, as geometric means over the tables."""
    shares = sorted({score.hidden for score in scores} - {0.0})
    lines = []
    for name in (*RIVALS, *TRAINED_WITH_HIDDEN_CELLS):
        cells = []
        for share in shares:
            of_share = means([one for one in scores if one.hidden == share and one.method in (POSTERIORI, name)])
            pairs = [row[POSTERIORI]["crps"] / row[name]["crps"] for row in of_share.values() if len(row) == 2]
            cells.append(f"{np.exp(np.mean(np.log(pairs))):.3f}" if pairs else "–")
        lines.append([name, *cells])
    return markdown_table(["our CRPS / that of", *(f"{share:.0%} hidden" for share in shares)], lines)


def fill_page(scores: list[Score]) -> None:
    """Fill the tables of docs/regression.md."""
    whole = [one for one in scores if one.hidden == 0.0 and not one.method.endswith(HIDDEN)]
    page = DOCS / "regression.md"
    for name, text in (("tables", of_tables(whole)), ("methods", of_methods(whole)), ("hidden", of_hidden(scores))):
        replace_block(name, text, page)


def main() -> None:
    """Measure what the file lacks, or print its summary."""
    parser = argparse.ArgumentParser(description="Compare the regressor with models of other libraries.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--output", type=Path, metavar="FILE", help="add scores to this file of JSON lines")
    what.add_argument("--summary", type=Path, metavar="FILE", help="print the figures of such a file")
    what.add_argument(
        "--page", type=Path, metavar="FILE", help="write the figures of such a file to docs/regression.md"
    )
    parser.add_argument("--methods", nargs="+", metavar="NAME", help='these methods only; "rivals": all but ours')
    parser.add_argument("--again", nargs="+", default=[], metavar="NAME", help="measure these methods again")
    parser.add_argument("--tables", nargs="+", metavar="NAME", help="these tables only; tuning or report: a half")
    parser.add_argument("--splits", type=int, default=SPLITS, help=f"the first so many splits; default: {SPLITS}")
    parser.add_argument("--hidden", nargs="+", type=float, default=[], metavar="SHARE", help="hide test cells too")
    arguments = parser.parse_args()
    fits = methods(arguments.methods, bool(arguments.hidden or arguments.summary))
    if arguments.page is not None:
        fill_page(list(read_scores(arguments.page).values()))
        return
    if arguments.summary is not None:
        print(summary([score for score in read_scores(arguments.summary).values() if score.method in fits]))
        return
    folder = data_folder()
    if folder is None:
        print("skipped: no tables; set POSTERIORI_DATA to their folder, or put it at ../shared/data")
        return
    wanted = arguments.tables
    tables = [one for one in read_tables(folder) if not wanted or {one.name, half_of(one.name)} & set(wanted)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the rivals: categories that they have not met, overflow
        measure_all(arguments.output, fits, tables, arguments.splits, [0.0, *arguments.hidden], arguments.again)


if __name__ == "__main__":
    main()
