"""Terminal page of cluster: candidate mixtures, and the clusters of the best one."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np

from posteriori.cli.tables import console, label_text, new_table, print_grid, print_table
from posteriori.facts.model import Facts
from posteriori.support.formatting import count, number
from posteriori.tables import quote

_MOST_COLUMNS = 8


def edge(sizes: Sequence[int], best: int, n_rows: int) -> Facts | None:
    """Return a hint if the lowest BIC is at the largest or the smallest number of clusters that was tried."""
    if len(sizes) < 2:
        return None
    if best == max(sizes) and best < n_rows:
        further = f"{best}..{min(2 * best, n_rows)}"
        message = f"BIC is still falling at k = {best}, the largest tried; try -k {further}"
        return {"k": best, "side": "largest", "try": further, "message": message}
    if best == min(sizes) and best > 1:
        message = f"BIC is least at k = {best}, the smallest tried; try -k 1..{best}"
        return {"k": best, "side": "smallest", "try": f"1..{best}", "message": message}
    return None


def print_clusters(facts: Facts) -> None:
    """Print the candidates, and the clusters of the best one in their most informative columns."""
    out = console()
    columns = facts["columns"]
    out.print(f"{facts['table']}: {facts['rows']:,} rows, {len(columns)} column{'s' if len(columns) > 1 else ''}\n")
    table = new_table("k", "log-likelihood (nats)", "parameters", "BIC", "AIC", "")
    for one in facts["candidates"]:
        figures = (f"{one[key]:,.1f}" for key in ("bic", "aic"))
        mark = "← lowest BIC" if one["best"] and len(facts["candidates"]) > 1 else ""
        mark += "" if one["converged"] else " not converged"
        table.add_row(str(one["k"]), f"{one['log_likelihood']:,.1f}", count(one["n_parameters"]), *figures, mark)
    table.columns[-1].justify = "left"
    print_table(out, table)
    if facts["edge"] is not None:
        out.print(f"{facts['edge']['message']}\n", soft_wrap=True)
    if facts["taken_as_categories"]:
        names = facts["taken_as_categories"]
        which = f"{quote(names, len(names))} {'hold' if len(names) > 1 else 'holds'} only a few whole numbers"
        again = shlex.quote(",".join(names))
        out.print(f"{which}, which are taken as categories; --numeric {again} makes them numbers\n", soft_wrap=True)
    labels = [str(one["component"]) for one in facts["clusters"]]
    sizes = [
        [f"{one['rows']:,}" for one in facts["clusters"]],
        [f"{one['share']:.1%}" for one in facts["clusters"]],
    ]
    print_grid(out, "clusters", ["rows", "p(component)"], labels, sizes)
    shown = columns[:_MOST_COLUMNS]
    title = "mean ± standard deviation, or the most frequent category; the most informative column first"
    print_grid(out, title, [label_text(one["name"]) for one in shown], labels, [_cells(one) for one in shown])
    if len(columns) > len(shown):
        out.print(f"and {len(columns) - len(shown)} more columns (all with --json)\n")
    if facts["assigned"] is not None:
        out.print(f"rows with their component written to {facts['assigned']}", soft_wrap=True)
    out.print(f"saved to {facts['output']}", soft_wrap=True)


def _cells(column: Facts) -> list[str]:
    """Return mean and standard deviation, or the most frequent category, of a column in each cluster."""
    if "probability" not in column:
        spread = np.sqrt(column["variance"])
        return [f"{number(mean)} ± {number(sd, 3)}" for mean, sd in zip(column["mean"], spread, strict=True)]
    probability: Any = np.asarray(column["probability"])
    if not probability.shape[1]:
        return ["–"] * len(probability)
    return [f"{label_text(column['categories'][k])} {row[k]:.0%}" for row in probability for k in [row.argmax()]]
