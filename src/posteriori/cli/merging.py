"""The command merge: add up models that were fitted to different rows."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from posteriori.cli.messages import UserError, as_user_errors, one_line, warn
from posteriori.cli.models import holds_joint_model, load
from posteriori.cli.options import AsJson, Force
from posteriori.cli.outputs import Origin, check_model_name, output_at
from posteriori.registry import Subject

_ALL = 0.95  # the share of common rows is an estimate


def merge(
    models: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL...", help="Models saved by fit, each of a part of the rows.", show_default=False),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", "--out", metavar="FILE", help="File of the merged model.")],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Merge models of different rows into the model of all rows.

    The models hold sufficient statistics, which are added up; no row is read. All models must be of one kind and have
    the same columns; categories and classes may differ. Models learned by EM cannot be merged: fit the parts with
    --model nb, lda, qda or rda. The models tan, chow-liu and aode can be merged if all columns are categorical, because
    they cut numbers at points that differ between the parts. A pool keeps those of its members that can be merged.

    Example:

        posteriori merge north.posteriori south.posteriori --output both.posteriori
    """
    check_model_name(output)
    place = output_at(output, models, force, origin=Origin("merge", {}, models))
    joint = next((path for path in models if holds_joint_model(path)), None)
    if joint is not None:
        raise UserError(
            f"{str(joint)!r} holds a joint model, which is not merged; fit all tables at once: posteriori fit A B"
        )
    members = [load(path, Subject.CLASS) for path in models]

    from posteriori.classifiers.merging import merge as merged
    from posteriori.cli import tables
    from posteriori.facts.model import labels_of

    try:
        model = merged(members)
    except (ValueError, TypeError) as error:
        raise UserError(_with_files(one_line(str(error)), models)) from error
    with as_user_errors():
        place.save(model)
    _warn_of_shared_rows(models, members)
    labels = labels_of(model)
    found = {
        "command": "merge",
        "models": [
            {"file": str(path), "rows": float(one.class_count_.sum())}
            for path, one in zip(models, members, strict=True)
        ],
        "rows": float(model.class_count_.sum()),
        "classes": dict(zip(map(str, labels), model.class_count_.tolist(), strict=True)),
        "output": str(output),
    }
    (tables.print_json if as_json else _print)(found)


def _warn_of_shared_rows(paths: list[Path], members: list[Any]) -> None:
    """Warn of models that were trained on the same rows, which the merged model counts several times."""
    from posteriori.classifiers.training_record import record_of

    for (one, first), (other, second) in itertools.combinations(zip(paths, members, strict=True), 2):
        records: list[Any] = [record_of(model).fingerprints for model in (first, second)]
        share = 1.0 if one.samefile(other) else 0.0 if None in records else records[0].shared(records[1])
        if share:
            rows = "all rows" if share > _ALL else f"about {share:.0%} of the rows"
            warn(
                f"{rows} of the smaller of {str(one)!r} and {str(other)!r} are training rows of both, and count twice "
                "in the merged model; leave one of the two out"
            )


def _with_files(message: str, models: list[Path]) -> str:
    """Return a message with the number of each model replaced by its file."""

    def named(found: re.Match[str]) -> str:
        position = int(found[1])
        return repr(str(models[position])) if position < len(models) else found[0]

    return re.sub(r"\bmodel (\d+)\b", named, message)


def _print(found: dict[str, Any]) -> None:
    from posteriori.cli.tables import console

    out = console()
    for one in found["models"]:
        out.print(f"{one['file']}: {one['rows']:,.15g} rows", soft_wrap=True)
    classes = ", ".join(f"{label} {count:,.15g}" for label, count in found["classes"].items())
    out.print(f"together: {found['rows']:,.15g} rows; {classes}", soft_wrap=True)
    out.print(f"saved to {found['output']}", soft_wrap=True)
