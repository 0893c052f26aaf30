"""The command cv: comparison of models by k-fold cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.fit_options import folds_of_number, refuse_of_classes
from posteriori.cli.messages import UserError, as_user_errors, progress_bar
from posteriori.cli.named_columns import group_numbers, kept_and_text, parts_of_dates
from posteriori.cli.options import (
    AsJson,
    Groups,
    KeptOrTextColumns,
    LabelOptions,
    Quiet,
    SplitSeed,
    TablePath,
    Target,
    models_option,
    refuse_misspelt_regressors,
    split_names,
)
from posteriori.cli.targets import read_labelled
from posteriori.registry import CROSS_VALIDATED, REGRESSOR, REGRESSORS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from posteriori.cli.targets import LabelledTable

_FOLDS = 5

_SHOWN = {
    "log_loss": "log-loss",
    "accuracy": "accuracy",
    "brier": "Brier",
    "auc": "AUC",
    "calibration_error": "calibration",
}


def cv(
    table: TablePath,
    target: Target = "",
    models: Annotated[list[str] | None, models_option(CROSS_VALIDATED, tuple(REGRESSORS))] = None,
    folds: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="Number of folds. Default: 5; of a number 9.")
    ] = None,
    groups: Groups = None,
    seed: SplitSeed = 0,
    *,
    columns: KeptOrTextColumns,
    labels: LabelOptions,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare models by k-fold cross-validation.

    Models are sorted by log-loss, in nats per row; 0 is perfect. Numbers after ± are standard errors. Of a target that
    is a quantity, the members of a regressor are compared, or models of numbers, sorted by CRPS. Details:
    docs/command_line.md.

    Example:

        posteriori cv penguins.csv --target species --models nb,tan,lda
    """
    names = split_names(models)
    of_numbers = _check_kind(names, labels, target)
    data = read_labelled(
        table,
        target,
        columns=columns,
        labels=labels,
        groups=groups,
        numbers=not names,
        only_numbers=of_numbers,
    )
    if data.is_number:
        _cross_validate_numbers(table, target, names, data, folds, columns, seed, as_json)
        return
    folds = folds or _FOLDS
    frame = data.frame
    names = names or list(CROSS_VALIDATED)

    from posteriori.comparison import cross_validate
    from posteriori.reading.target_cuts import numbers_as_classes
    from posteriori.tables.polars import exactly

    with (
        as_user_errors(),
        numbers_as_classes(),
        progress_bar("cross-validating", 2 * len(names) * frame.height, not quiet) as progress,
    ):
        found = cross_validate(
            names,
            frame.select(exactly(*data.features, target)),
            target,
            folds=folds,
            groups=None if data.groups is None else group_numbers(frame[data.groups]),
            categorical_features=data.categorical or "from_dtype",
            **kept_and_text(columns.columns, data.features),
            dates=parts_of_dates(columns.dates),
            random_state=seed,
            progress=progress,
        )
    rows: list[dict[str, Any]] = found.table.sort("log_loss").to_dicts()
    name_of = dict(zip(found.table["model"], names, strict=True))
    for row in rows:
        row["name"] = name_of[row["model"]]
    facts = {
        "command": "cv",
        "table": str(table),
        "target": target,
        "rows": frame.height,
        "folds": folds,
        "models": rows,
    }
    if as_json:
        from posteriori.cli.tables import print_json

        print_json(facts)
        return
    from posteriori.cli.tables import console, model_text, new_table, print_table

    out = console()
    out.print(f"{table}: {frame.height:,} rows, {folds}-fold cross-validation of {target}\n")
    page = new_table("model", *_SHOWN.values())
    for row in rows:
        first, others = list(_SHOWN)[:2], list(_SHOWN)[2:]
        cells = [f"{row[name]:.3f} ± {row[f'{name}_se']:.3f}" for name in first]
        page.add_row(model_text(row["name"], row["model"]), *cells, *(f"{row[name]:.3f}" for name in others))
    print_table(out, page)


def _check_kind(names: Sequence[str], labels: LabelOptions, target: str) -> bool:
    """Return whether models predict numbers; UserError if only some do, or if options are of classes."""
    refuse_misspelt_regressors("--models", names)
    predict_number = [name for name in names if name in REGRESSORS]
    others = [name for name in names if name not in REGRESSORS]
    if predict_number and others:
        raise UserError(
            f"--models names {predict_number[0]}, which predicts a number, and {others[0]}, which does not; compare "
            "models of one kind"
        )
    if predict_number:
        refuse_of_classes([labels], target)
    return bool(predict_number)


def _cross_validate_numbers(
    table: Path,
    target: str,
    names: Sequence[str],
    data: LabelledTable,
    folds: int | None,
    columns: KeptOrTextColumns,
    seed: int,
    as_json: bool,
) -> None:
    """Print the cross-validated scores of models, or without names of the members of a regressor and of their pool."""
    from posteriori.cli import number_pages, tables
    from posteriori.facts.numbers import number_members
    from posteriori.tables.polars import exactly

    frame, folds = data.frame, folds_of_number(folds)
    settings = {
        f"columns__{name}": value for name, value in kept_and_text(columns.columns, data.features).items() if value
    }
    settings |= {
        "columns__dates": parts_of_dates(columns.dates),
        "columns__categorical_features": data.categorical or None,
    }
    with as_user_errors():
        groups = None if data.groups is None else group_numbers(frame[data.groups])
        rows = frame.select(exactly(*data.features, target))
        found = []
        for name in names or [REGRESSOR.name]:
            estimator = REGRESSORS[name].make(random_state=seed, folds=folds, **settings)
            members = number_members(estimator.fit(rows, target, groups=groups))
            scores = {key: value for key, value in members[-1].items() if key != "weight"}
            found += [{**scores, "member": name}] if names else members
    facts = {
        "command": "cv",
        "table": str(table),
        "target": target,
        "rows": frame.height,
        "folds": folds,
        "models": sorted(found, key=lambda one: float(one["crps"])) if names else found,
    }
    (tables.print_json if as_json else number_pages.print_number_cv)(facts)
