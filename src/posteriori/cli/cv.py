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
    LevelOptions,
    Quiet,
    SplitSeed,
    TablePath,
    Target,
    models_option,
    refuse_misspelt_regressors,
    split_names,
)
from posteriori.cli.targets import read_labelled
from posteriori.registry import CROSS_VALIDATED, OF_NUMBERS, REGRESSOR

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl

    from posteriori.cli.targets import LabelledTable

_FOLDS = 5


def cv(
    table: TablePath,
    target: Target = "",
    models: Annotated[list[str] | None, models_option(CROSS_VALIDATED, tuple(OF_NUMBERS))] = None,
    folds: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="Number of folds. Default: 5; of a number 9.")
    ] = None,
    groups: Groups = None,
    seed: SplitSeed = 0,
    *,
    columns: KeptOrTextColumns,
    labels: LevelOptions,
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
    data = read_compared(names, table, target, columns, labels, groups)
    folds = folds_of_number(folds) if data.is_number else folds or _FOLDS
    frame, is_of_pool = data.frame, data.is_number and not names
    names = names or list(CROSS_VALIDATED)

    import polars as pl

    from posteriori.comparison import cross_validate
    from posteriori.facts.numbers import number_members
    from posteriori.reading.target_cuts import numbers_as_classes

    rows, settings = rows_and_settings(data, target, columns)
    with (
        as_user_errors(),
        numbers_as_classes(),
        progress_bar("cross-validating", 2 * len(names) * frame.height, not (quiet or is_of_pool)) as progress,
    ):
        of_rows = None if data.groups is None else group_numbers(frame[data.groups])
        if is_of_pool:
            changed = {
                f"columns__{name}": value for name, value in settings.items() if value not in (None, "from_dtype")
            }
            pool = REGRESSOR.make(random_state=seed, folds=folds, **changed)
            scored = number_members(pool.fit(rows, target, groups=of_rows))
        else:
            order = labels.levels(target, frame[target].unique()) or {}
            result = cross_validate(
                names,
                rows,
                target,
                folds=folds,
                groups=of_rows,
                order=order.get(target),
                random_state=seed,
                progress=progress,
                **settings,
            )
            by = ["crps", "rmse"] if data.is_number else ["log_loss"]
            scored = result.table.with_columns(pl.Series("name", names)).sort(by, nulls_last=True).to_dicts()
    facts = {
        "command": "cv",
        "table": str(table),
        "target": target,
        "rows": frame.height,
        "folds": folds,
        "models": scored,
    }
    if as_json:
        from posteriori.cli.tables import print_json

        print_json(facts)
        return
    from posteriori.cli.tables import (
        UNITS,
        console,
        model_text,
        new_table,
        print_members,
        print_table,
        score_cells,
        score_heads,
    )

    out = console()
    out.print(f"{table}: {frame.height:,} rows, {folds}-fold cross-validation of {target}\n")
    if is_of_pool:
        print_members(out, scored)
    else:
        page = new_table("model", *score_heads(result.measures))
        for row in scored:
            page.add_row(model_text(row["name"], row["model"]), *score_cells(row, result.measures))
        print_table(out, page)
        if data.is_number:
            out.print(UNITS)


def read_compared(
    names: Sequence[str],
    table: Path,
    target: str,
    columns: KeptOrTextColumns,
    labels: LabelOptions,
    groups: str | None = None,
) -> LabelledTable:
    """Read the table on which models are compared; the target is a number if they predict one, or without names.

    Raises
    ------
    UserError
        Only some models predict a number, an option is of classes, or as by `read_labelled`.
    """
    refuse_misspelt_regressors("--models", [name for name in names if name not in OF_NUMBERS])
    predict_number = [name for name in names if name in OF_NUMBERS]
    others = [name for name in names if name not in OF_NUMBERS]
    if predict_number and others:
        raise UserError(
            f"--models names {predict_number[0]}, which predicts a number, and {others[0]}, which does not; compare "
            "models of one kind"
        )
    if predict_number:
        refuse_of_classes([labels], target)
    return read_labelled(
        table,
        target,
        columns=columns,
        labels=labels,
        groups=groups,
        numbers=not names,
        only_numbers=bool(predict_number),
    )


def rows_and_settings(
    data: LabelledTable, target: str, columns: KeptOrTextColumns
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return the features with the target, and how the functions of Python read them."""
    from posteriori.tables.polars import exactly

    settings = {"categorical_features": data.categorical or "from_dtype", "dates": parts_of_dates(columns.dates)}
    return data.frame.select(exactly(*data.features, target)), settings | kept_and_text(columns.columns, data.features)
