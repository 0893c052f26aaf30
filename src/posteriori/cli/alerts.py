"""Alerts on the columns of a table, which fit prints and records in the model, so that show knows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from posteriori.cli.facts import Facts
from posteriori.support.formatting import listed

if TYPE_CHECKING:
    from rich.console import Console

    from posteriori.statistics.description import ScannedTable
    from posteriori.tables import Scan

_MOST_SHOWN = 10  # columns
_SAMPLED = 5000  # rows, as in a report
_SAID_ELSEWHERE = ("constant", "ignored")  # hints of fit, the columns of show


def find_alerts(estimator: Any, rows: Scan, target: str, description: ScannedTable) -> list[Facts]:
    """Return the alerts of a report on the columns of a table, from evenly spaced rows.

    Categories that are rare may not be among these rows, so that constant columns are those of the whole table.
    """
    from posteriori.reporting.alerts import find_alerts as find
    from posteriori.reporting.data import ReportData, column_facts
    from posteriori.tables.labels import numbers_as_classes

    every = -(-description.n_rows // _SAMPLED)
    sample = rows.frame.gather_every(every).collect(engine="streaming")
    with numbers_as_classes():
        subject = ReportData.of(estimator, sample, target)
    class_counts = [description.labels.get(label, 0) for label in estimator.target_.categories]
    found = find(subject, column_facts(estimator, sample), class_counts)
    return [
        *(
            {"columns": [name], "kind": "constant", "text": "All observed cells hold the same value."}
            for name, column in description.columns.items()
            if column.n_values == 1
        ),
        *(
            {"columns": list(one.columns), "kind": one.kind, "text": one.text}
            for one in found
            if one.kind not in _SAID_ELSEWHERE
        ),
    ]


def print_alerts(out: Console, alerts: Sequence[Facts], beside: Sequence[str] = ()) -> None:
    """Print the columns of each kind of alert; the kinds `beside` are printed elsewhere."""
    of_kind: dict[str, list[Facts]] = {}
    for alert in alerts:
        if alert["kind"] not in beside:
            of_kind.setdefault(alert["kind"], []).append(alert)
    for kind, found in of_kind.items():
        if len(found) == 1:
            out.print(f"alert: {_names(found[0])}: {kind}. {found[0]['text']}")
        else:
            out.print(f"alert: {kind}: {listed([_names(one) for one in found], _MOST_SHOWN)} (why: --json)")
    if of_kind:
        out.print()


def _names(alert: Facts) -> str:
    return " = ".join(alert["columns"]) if alert["kind"] == "duplicates" else listed(alert["columns"])
