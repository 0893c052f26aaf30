"""Tables, labels and scores on a terminal of any width, and facts as JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table

from posteriori.cli.consoles import SafeConsole
from posteriori.model_selection.measures import MEASURES, OF_NUMBERS
from posteriori.support.formatting import cell_text, count, escaped, listed, number, plural, probability, shortened

if TYPE_CHECKING:
    from posteriori.facts.model import Facts

_MAX_EXACT_INTEGER = 1 << 53  # readers of JSON may hold numbers as doubles
_NARROWEST = 60  # columns; on a narrower terminal the lines wrap
NAME = 32  # characters of a name
_SHORTEST_NAME = 8  # where a table is too wide
_MOST_ALERTS = 10  # columns
UNITS = "CRPS, RMSE, MAE and width are in units of the target; coverage and width are of 90% intervals\n"


class _Console(SafeConsole):
    def on_broken_pipe(self) -> None:
        """Raise the error, which `main` turns into an exit code; rich would end the process."""
        raise BrokenPipeError


def console() -> Console:
    """Return a console on the current stdout that prints names and cells as they are, not as markup."""
    out = _Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
    out.width = max(out.width, _NARROWEST)
    return out


def print_json(facts: Facts) -> None:
    """Print facts as one JSON document."""
    is_unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    print(json.dumps(plain(facts), indent=2, ensure_ascii=not is_unicode, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value that JSON can hold: Python values for those of NumPy, and None for NaN and infinity."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _MAX_EXACT_INTEGER:
        # A reader of JSON would lose digits; above 1e308 it has no number at all.
        return float(value) if value.bit_length() < 1024 else None
    return value


def label_text(label: Any) -> str:
    """Return a class or a category as a file spells it, on one line, cut to 32 characters."""
    # A float is not rounded here: two labels must not look the same.
    text = str(label) if isinstance(label, float) else cell_text(label, longest=None)
    return shortened(escaped(text), NAME)


def group_text(names: Sequence[str]) -> str:
    """Return the names of columns that say the same, after the first one in parentheses, or of one column alone."""
    if len(names) == 1:
        return label_text(names[0])
    return f"{label_text(names[0])} (with {listed([label_text(name) for name in names[1:]], 2)})"


def model_text(name: str, title: str) -> str:
    """Return the name of a model, by which it can be asked for, and its title."""
    return name if name == title else f"{name}: {title}"


def new_table(*headers: str, left: int = 1) -> Table:
    """Return an empty table with one line per row: the first `left` columns hold names, the others numbers.

    Numbers are right-aligned. Only names are wrapped where a table is too wide (`print_rows`).
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for position, header in enumerate(headers):
        table.add_column(
            header,
            justify="left" if position < left else "right",
            no_wrap=True,
            overflow="ellipsis" if position < left else "crop",
            min_width=3,
        )
    return table


def print_table(out: Console, table: Table) -> None:
    """Print a table as `print_rows` does, and an empty line."""
    print_rows(out, table)
    out.print()


def print_rows(out: Console, table: Table) -> None:
    """Print a table; where it is too wide, wrap the longest names, then print the columns in several tables."""
    if table.expand or fits(out, table):
        out.print(table)
        return
    widths = [_width_of(column) for column in table.columns]
    names = [place for place, column in enumerate(table.columns) if column.overflow == "ellipsis"]
    excess = _width_of_table(out, table) - out.width
    while excess > 0 and names:
        longest = max(names, key=widths.__getitem__)
        if widths[longest] <= _SHORTEST_NAME:
            break
        widths[longest] -= 1
        excess -= 1
    for column, width in zip(table.columns, widths, strict=True):
        if width < _width_of(column):
            column.no_wrap, column.overflow = False, "fold"
        column.min_width = column.max_width = width
    for part in [table] if excess <= 0 else _parts_of(out, table, names):
        out.print(part)


def _parts_of(out: Console, table: Table, names: Sequence[int]) -> list[Table]:
    """Return tables that fit: each has the columns of names, and some of the others."""
    parts: list[list[int]] = [[]]
    for place in range(len(table.columns)):
        if place in names:
            continue
        if parts[-1] and _width_of_table(out, _part_of(table, [*names, *parts[-1], place])) > out.width:
            parts.append([])
        parts[-1].append(place)
    return [_part_of(table, [*names, *part]) for part in parts]


def _part_of(table: Table, places: Sequence[int]) -> Table:
    part = new_table()
    part.columns = [replace(table.columns[place], _index=k) for k, place in enumerate(places)]
    part.rows = table.rows
    return part


def _width_of(column: Column) -> int:
    width = max(cell_len(str(cell)) for cell in (column.header, *column.cells))
    return max(width if column.max_width is None else min(width, column.max_width), column.min_width or 0)


def _width_of_table(out: Console, table: Table) -> int:
    return out.measure(table, options=out.options.update(max_width=10_000)).maximum


def fits(out: Console, table: Table) -> bool:
    """Return whether a table fits the width of the console without cutting any cell."""
    return _width_of_table(out, table) <= out.width


def print_grid(
    out: Console, title: str, rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[str]]
) -> None:
    """Print a grid as one table if it fits, else transposed if that fits, else as several narrower tables."""
    out.print(title, style="bold", soft_wrap=True)
    for table in (_grid(rows, columns, cells), _grid(columns, rows, list(zip(*cells, strict=True)))):
        if fits(out, table):
            print_table(out, table)
            return
    start = 0
    while start < len(columns):
        stop = start + 1
        while stop < len(columns) and fits(out, _columns_between(rows, columns, cells, start, stop + 1)):
            stop += 1
        print_table(out, _columns_between(rows, columns, cells, start, stop))
        start = stop


def _columns_between(
    rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[str]], start: int, stop: int
) -> Table:
    return _grid(rows, columns[start:stop], [row[start:stop] for row in cells])


def _grid(rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[str]]) -> Table:
    table = new_table("", *columns)
    for name, row in zip(rows, cells, strict=True):
        table.add_row(name, *row)
    return table


MOST_FEATURES = 10


def print_sentences(out: Console, sentences: Sequence[str]) -> None:
    """Print the sentences on held-out predictions."""
    for sentence in sentences:
        out.print(escaped(sentence))  # a file may hold them


def print_scores(out: Console, title: str, found: Facts) -> None:
    """Print the scores of a model beside those of its class prior, by class only those of the class of interest."""
    table = new_table(title, "model", "class prior")
    names = {"accuracy": "accuracy", "log_loss": "log-loss (nats)", "brier_score": "Brier score", "auc": "AUC"}
    names |= {"ranked_score": "ranked probability score"} if "ranked_score" in found["model"] else {}
    one = found["positive"]
    by_class, whose = ("_macro", "mean of the classes") if one is None else ("", label_text(one))
    names |= {f"{name.lower()}{by_class}": f"{name} ({whose})" for name in ("precision", "recall", "F1")}
    for key, name in names.items():
        table.add_row(name, probability(found["model"][key]), probability(found["class_prior"][key]))
    print_table(out, table)


def score_heads(measures: Sequence[str]) -> list[str]:
    """Return the heads of the columns of scores."""
    return [MEASURES[name].title for name in measures]


def score_cells(scores: Facts, measures: Sequence[str], certain: int = 2) -> list[str]:
    """Return the cells of a model in a table of scores, the first of them with standard errors if these are known."""
    errors = [scores.get(f"{name}_se") if place < certain else None for place, name in enumerate(measures)]
    return [MEASURES[name].text(scores[name], error) for name, error in zip(measures, errors, strict=True)]


def print_members(out: Console, models: Sequence[Facts]) -> None:
    """Print a line for each member of a pool, with its weight, and one for the pool; or one for each model."""
    of_pool = any("weight" in one for one in models)
    head = ["member", "weight"] if of_pool else ["model"]
    table = new_table(*head, *score_heads(OF_NUMBERS))
    for one in models:
        name = one["member"]
        weight = [] if not of_pool else [""] if name == "pool" else [f"{one['weight']:.2f}"]
        table.add_row(name, *weight, *score_cells(one, OF_NUMBERS))
    print_table(out, table)
    out.print(UNITS)


def print_candidates(out: Console, candidates: Sequence[Facts], verdict: str) -> None:
    """Print the cross-validated scores and weights of the candidates of a pool, and which models these are."""
    table = new_table("candidate", "log-loss (nats)", "accuracy", "weight")
    for candidate in candidates:
        scores = score_cells(candidate, ("log_loss", "accuracy"))
        weight = "" if candidate["member"] == "pool" else f"{candidate['weight']:.2f}"
        table.add_row(candidate["sees"], *scores, weight)
    print_table(out, table)
    for candidate in candidates:
        if candidate["description"]:
            behind = "" if candidate["sees"] == candidate["member"] else f"{candidate['member']}, "
            out.print(f"{candidate['sees']}: {behind}{candidate['description']}")
    out.print("weight: exponent of the candidate's posterior in the pool; weights are not shares and need not sum to 1")
    if verdict:
        out.print(verdict)
    out.print()


def print_information(out: Console, facts: Facts) -> None:
    """Print the feature importance with standard errors, the greatest first."""
    measured = facts["information_rows"]
    named = [(label_text(one["feature"]), one) for one in facts["information"]]
    named += [(group_text(one["features"]), one) for one in facts["information_of_groups"]]
    named.sort(key=lambda pair: -pair[1]["nats"])
    lost = [(name, one["nats"], f"{one['nats']:.4f} ± {one['standard_error']:.4f}") for name, one in named]
    _print_importance(out, "nats lost without it", lost, NAME)
    rows = f"{measured['rows']:,}"
    where = f"on {rows} held-out rows" if measured["held_out"] else f"expected by the model, over {rows} rows it drew"
    out.print(f"log-loss added when the column is unknown, {where}")
    if facts["information_of_groups"]:
        out.print("columns that say the same may lose little each; beside them is what all of them lose together")
    out.print()


def print_number_importance(out: Console, facts: Facts) -> None:
    """Print the feature importance of a regressor with standard errors, the greatest first; nothing of one model."""
    if "importance" not in facts:
        return
    added = [
        (label_text(one["feature"]), one["crps"], f"{number(one['crps'], 4)} ± {number(one['standard_error'], 2)}")
        for one in facts["importance"]
    ]
    _print_importance(out, "CRPS added without it", added)
    out.print(f"CRPS added when the column is unknown, on {facts['importance_rows']['rows']:,} held-out rows\n")


def _print_importance(
    out: Console, measure: str, entries: Sequence[tuple[str, float, str]], widest: int | None = None
) -> None:
    """Print the first features: name, value, and the value as text."""
    table = new_table("feature importance", measure, "")
    table.columns[0].max_width = widest
    table.columns[2].justify = "left"
    greatest = max((value for _, value, _ in entries), default=0.0)
    for name, value, text in entries[:MOST_FEATURES]:
        table.add_row(name, text, bar(value, greatest))
    print_rows(out, table)
    if len(entries) > MOST_FEATURES:
        out.print(f"and {plural(len(entries) - MOST_FEATURES, 'more feature')}")


def print_parameter_count(out: Console, facts: Facts) -> None:
    """Print the number of free parameters, and that of the full joint distribution if it is known."""
    full = facts["n_parameters_full_joint"]
    beside = f" ({count(full)} without independence given the class)" if full is not None else ""
    out.print(f"{count(facts['n_parameters'])} parameters{beside}")


def bar(value: float, greatest: float, width: int = 24) -> str:
    """Return a horizontal bar, of this width in characters for the greatest value; none for a negative one."""
    return "█" * round(width * max(value, 0.0) / greatest) if greatest > 0 else ""


def print_alerts(out: Console, alerts: Sequence[Facts], beside: Sequence[str] = ()) -> None:
    """Print the columns of each kind of alert; the kinds `beside` are printed elsewhere."""
    from posteriori.reporting.alerts import LEAKS

    of_kind: dict[str, list[Facts]] = {}
    for alert in alerts:
        if alert["kind"] not in beside:
            of_kind.setdefault(alert["kind"], []).append(alert)
    for kind, found in of_kind.items():
        if len(found) == 1:
            out.print(f"alert: {_names(found[0])}: {kind}. {found[0]['text']}")
        else:
            most = len(found) if kind in LEAKS else _MOST_ALERTS
            out.print(f"alert: {kind}: {listed([_names(one) for one in found], most)} (why: --json)")
    if of_kind:
        out.print()


def _names(alert: Facts) -> str:
    return " = ".join(alert["columns"]) if alert["kind"] == "duplicates" else listed(alert["columns"])
