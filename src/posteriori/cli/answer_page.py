"""The terminal pages of query: answers of a model of rows, and of a network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from posteriori.cli.tables import console, label_text, new_table, print_table
from posteriori.support.formatting import number, plural

if TYPE_CHECKING:
    from pathlib import Path

    from posteriori.facts.model import Facts
    from posteriori.networks import MostProbable

_FEW = 20  # training rows, below which a sentence says so


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
        _print_marginals(out, ("column", "category"), categories)
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


def _print_marginals(out: Console, headers: tuple[str, str], marginals: dict[str, Any]) -> None:
    table = new_table(*headers, "probability", left=2)
    for name, states in marginals.items():
        for position, (state, p) in enumerate(states.items()):
            table.add_row("" if position else label_text(name), label_text(state), f"{p:.6f}")
    print_table(out, table)


def print_network_answer(found: Facts, is_event: bool) -> None:
    """Print the answer of a network: a density, the marginals, a probability, or the cells of a table."""
    out = console()
    if "density" in found:
        out.print(found["density"])
        return
    if "marginals" in found:
        out.print(found["question"])
        _print_marginals(out, ("variable", "state"), found["marginals"])
        return
    sampled = found["method"] == "sampling"
    if is_event:
        (cell,) = found["answer"]
        error = f" ± {number(cell['standard_error'])}" if sampled else ""
        out.print(f"{found['question']} = {number(cell['probability'], 6)}{error}")
        return
    names = list(found["answer"][0]["states"])
    headers = [*map(label_text, names), "probability", *(["standard error"] if sampled else [])]
    table = new_table(*headers, left=len(names))
    for cell in found["answer"]:
        extra = [number(cell["standard_error"])] if sampled else []
        table.add_row(*map(label_text, cell["states"].values()), f"{cell['probability']:.6f}", *extra)
    out.print(found["question"])
    print_table(out, table)


def print_more(best: MostProbable | None, trails: Sequence[str], picture: Path | None) -> None:
    """Print the most probable configuration, the trails, and where the picture is, of those that were asked for."""
    out = console()
    if best is not None:
        table = new_table("variable", "most probable state", left=2)
        for name, state in best.states.items():
            table.add_row(label_text(name), label_text(state))
        print_table(out, table)
        out.print(f"probability of all together: {best.probability:.6g}")
    for trail in trails:
        out.print(trail)
    if picture is not None:
        out.print(f"drawn in {picture}")
