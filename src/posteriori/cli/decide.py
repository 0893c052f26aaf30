"""The command decide: the probability from which rows are decided for a class, by held-out rows."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from posteriori.cli.messages import UserError, as_user_errors
from posteriori.cli.models import load
from posteriori.cli.options import AsJson, ModelPath
from posteriori.registry import Subject
from posteriori.support.suggestions import class_index

if TYPE_CHECKING:
    from posteriori.scoring.threshold_choice import ThresholdChoice


def decide(
    model: ModelPath,
    label: Annotated[str, typer.Argument(metavar="CLASS", help="The class to decide for.", show_default=False)],
    precision: Annotated[
        float | None,
        typer.Option(metavar="P", help="Find as many as possible, of which this share is right.", show_default=False),
    ] = None,
    recall: Annotated[
        float | None,
        typer.Option(metavar="P", help="Find this share of the rows of CLASS.", show_default=False),
    ] = None,
    capacity: Annotated[
        str | None,
        typer.Option(metavar="P%", help="Decide for CLASS in this share of the rows.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Choose the probability from which rows are decided for a class.

    It is chosen on the held-out predictions that fit keeps, and what it does on such rows is printed, with what other
    held-out rows would say. Give one of --precision, --recall and --capacity.

    Example:

        posteriori decide penguins.posteriori Chinstrap --recall 0.95
    """
    estimator = load(model, Subject.CLASS)
    labels = estimator.classes_.tolist()
    share = None if capacity is None else _share(capacity)
    with as_user_errors():
        position = class_index(label, labels)
        found = estimator.choose_threshold(labels[position], precision=precision, recall=recall, capacity=share)
    if as_json:
        from posteriori.cli.tables import print_json

        print_json({"command": "decide", "model": str(model), "class": labels[position], **_facts(found)})
        return
    typer.echo(str(found))
    name = shlex.quote(f"{label}={found.written}")
    typer.echo(f"on new rows: posteriori predict {shlex.quote(str(model))} TABLE --threshold {name}")


def _share(text: str) -> float:
    """Return the share of --capacity."""
    try:
        return float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        raise UserError(f"--capacity is {text!r}; give a share of the rows, such as 5%") from None


def _facts(found: ThresholdChoice) -> dict[str, object]:
    return {
        "threshold": found.threshold,
        "precision": found.precision,
        "recall": found.recall,
        "share": found.share,
        "intervals": {name: list(ends) for name, ends in found.intervals.items()},
        "rows": found.n,
        "rows_of_class": found.n_of_class,
    }
