"""The terminal pages of a joint model: of fit, show and query."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from posteriori.cli.tables import bar, console, label_text, new_table, print_rows, print_table
from posteriori.facts.model import Facts
from posteriori.support.formatting import count, number, plural

_MOST_COLUMNS = 12
_MOST_LINKS = 6
_MOST_HINTS = 4
_WELL = 0.5  # a share of the entropy
_FEW = 20  # training rows, below which a sentence says so


def print_joint_fit(facts: Facts, details: bool) -> None:
    """Print what follows from what in a table, and what can be asked next; all columns with `details`."""
    out = console()
    n_columns = len({column.get("part_of", column["name"]) for column in facts["columns"]})
    out.print(f"{facts['table']}: {plural(facts['rows'], 'row')}, {plural(n_columns, 'column')}\n")
    out.print(
        "Without --target, this is a joint model: one distribution of all columns, which answers questions about any "
        "of them. --target NAME fits a model that predicts one column more precisely.\n"
    )
    if details:
        from posteriori.cli.fit_facts import print_columns

        print_columns(out, facts["columns"])
    _print_explained(out, facts, details)
    _print_links(out, facts["links"], details)
    shown = facts["hints"] if details else facts["hints"][:_MOST_HINTS]
    for hint in shown:
        out.print(f"hint: {hint}")
    if len(shown) < len(facts["hints"]):
        out.print(f"and {plural(len(facts['hints']) - len(shown), 'more note')}")
    if shown:
        out.print()
    _print_next(out, facts)


def _print_explained(out: Console, facts: Facts, details: bool) -> None:
    found: Sequence[Facts] = facts["explained"]
    if not found:
        out.print("There are too few rows to hold some out and see which columns follow from the others.\n")
        return
    table = new_table("column", "explained", "", "accuracy", "most frequent")
    table.columns[2].justify = "left"
    shown = found if details else found[:_MOST_COLUMNS]
    for one in shown:
        shares = [f"{one[key]:.0%}" if key in one else "" for key in ("accuracy", "most_frequent")]
        table.add_row(label_text(one["column"]), f"{one['share']:.0%}", bar(one["share"], 1.0, 16), *shares)
    print_rows(out, table)
    if len(shown) < len(found):
        out.print(f"and {plural(len(found) - len(shown), 'more column')} (all with --details)")
    out.print(
        "explained: share of the entropy of the column that the other cells of the row explain, on "
        f"{facts['explained_rows']:,} held-out rows; beside the accuracy that of the most frequent category\n"
    )


def _print_links(out: Console, links: Sequence[Facts], details: bool) -> None:
    """Print the pairs of columns that depend on each other most."""
    if not links:
        out.print("No column depends on another one by more than chance.\n")
        return
    table = new_table("strongest links", "nats", "")
    table.columns[2].justify = "left"
    shown = links if details else links[:_MOST_LINKS]
    for one in shown:
        pair = " – ".join(map(label_text, one["columns"]))
        table.add_row(pair, f"{one['nats']:.3f}", bar(one["nats"], links[0]["nats"], 16))
    print_rows(out, table)
    if len(shown) < len(links):
        out.print(f"and {plural(len(links) - len(shown), 'more link')} (all with --details)")
    out.print("mutual information of two columns: what knowing one of them adds about the other\n")


def _print_next(out: Console, facts: Facts) -> None:
    """Print commands that go on from here, with columns of the table."""
    model = shlex.quote(facts["output"])
    names = [one["column"] for one in facts["explained"]] or facts["can_be_asked"]
    missing = any(column["missing"] for column in facts["columns"])
    table = shlex.quote(facts["table"])
    out.print(f"saved to {facts['output']}", soft_wrap=True)
    if facts["pools"]:
        out.print(f"with {_pools(facts)}", soft_wrap=True)
    one = f"{shlex.quote(facts['pools'][0])} --method pool" if facts["pools"] else shlex.quote(names[0])
    out.print(f"one column of new rows: posteriori predict {model} TABLE --target {one}", soft_wrap=True)
    out.print(f"a page about the table: posteriori report {model} {table}", soft_wrap=True)
    if missing:
        out.print(f"missing cells: posteriori impute {table} --model {model} --output FILE", soft_wrap=True)
    finding = _finding(facts["columns"], names[0])
    question = f"P({_quoted(names[1])} | {finding})" if len(names) > 1 else f"P({finding})"
    out.print(f"a question: posteriori query {model} {shlex.quote(question)}", soft_wrap=True)
    out.print(f"any question by clicks: posteriori explore {model}", soft_wrap=True)
    out.print(f"drawn rows: posteriori sample {model} -n 10", soft_wrap=True)
    if facts["explained"] and facts["explained"][0]["share"] >= _WELL:
        out.print(
            f"the best model of one column: posteriori fit {table} --target {shlex.quote(names[0])}", soft_wrap=True
        )


def _pools(facts: Facts) -> str:
    return f"pools of single columns: {', '.join(map(label_text, facts['pools']))}"


def _quoted(name: str) -> str:
    """Return a name as questions spell it."""
    return name if all(letter.isalnum() or letter in "_-." for letter in name) else f'"{name}"'


def _finding(columns: Sequence[Facts], name: str) -> str:
    """Return a finding about a column, as an example."""
    column = next(one for one in columns if one["name"] == name)
    if column.get("first_categories"):
        return f"{_quoted(name)} = {_quoted(str(column['first_categories'][0]))}"
    return f"{_quoted(name)} > {number(column['mean'], 3)}"


def print_joint(facts: Facts) -> None:
    """Print the members, columns and links of a joint model."""
    out = console()
    members = ", ".join(f"{one['member']} {one['weight']:.2f}" for one in facts["members"])
    out.print(f"joint model of {plural(len(facts['columns']), 'column')}, {count(facts['n_parameters'])} parameters")
    out.print(f"weights of the members: {members}")
    out.print("tree: one Chow-Liu tree; trees: a mixture of several trees")
    if facts["pools"]:
        out.print(_pools(facts))
    out.print()
    table = new_table("column", "kind", "values", left=3)
    for column in facts["columns"]:
        values = "" if "reason" in column else "no value"
        if "n_categories" in column:
            values = f"{column['n_categories']} categories"
        elif "min" in column:
            values = f"{number(column['min'], 6)} to {number(column['max'], 6)}"
        kind = f"ignored: {column['reason']}" if "reason" in column else column["kind"]
        table.add_row(label_text(column["name"]), kind, values)
    print_table(out, table)
    _print_links(out, facts["links"], details=True)


def print_answer(facts: Facts) -> None:
    """Print the answer to a question: a probability, or the distribution of each column asked for."""
    out = console()
    if "probability" in facts:
        out.print(f"{facts['question']} = {_probability(facts)}", soft_wrap=True)
        if facts.get("standard_error"):
            _print_few(out, facts["rows"], "answer leans")
        return
    out.print(facts["question"], soft_wrap=True)
    categories = {name: one for name, one in facts["marginals"].items() if "quantiles" not in one}
    if categories:
        table = new_table("column", "category", "probability", left=2)
        for name, states in categories.items():
            for position, (state, p) in enumerate(states.items()):
                table.add_row("" if position else label_text(name), label_text(state), f"{p:.6f}")
        print_table(out, table)
    _print_numbers(out, {name: one for name, one in facts["marginals"].items() if name not in categories})
    if "rows" in facts:
        fewest, most = min(facts["rows"].values()), max(facts["rows"].values())
        rows = _rows(most) if round(fewest) == round(most) else f"{round(fewest):,} to {_rows(most)}"
        out.print(f"from {rows}")
        _print_few(out, fewest, "answers lean")


def _probability(facts: Facts) -> str:
    """Return a probability with its standard error and the rows that it rests on, if the model keeps some."""
    p, error = facts["probability"], facts.get("standard_error")
    if not error:  # no rows are kept, or the event is impossible
        return number(p, 6)
    decimals = 1 - math.floor(math.log10(error))
    return f"{p:.{decimals}f} ± {error:.{decimals}f}, from {_rows(facts['rows'])}"


def _rows(weight: float) -> str:
    return plural(round(weight), "training row") if round(weight) else "the model alone"


def _print_few(out: Console, weight: float, leaning: str) -> None:
    """Print a sentence if few training rows are as given."""
    if not round(weight):
        out.print("No training row is like that.")
    elif weight < _FEW:
        out.print(
            f"Only {_rows(weight)} {'is' if round(weight) == 1 else 'are'} like that; the {leaning} on the model."
        )


def _print_numbers(out: Console, numbers: dict[str, Any]) -> None:
    if not numbers:
        return
    levels = next(iter(numbers.values()))["quantiles"]
    table = new_table("column", "mean", "sd", *(f"{float(level):.0%}" for level in levels))
    for name, one in numbers.items():
        cells = [one["mean"], one["sd"], *one["quantiles"].values()]
        table.add_row(label_text(name), *(number(cell) for cell in cells))
    print_table(out, table)
    out.print("sd: standard deviation; 5% to 95%: quantiles of the density")
