"""The command fit: learn a model from a table, score it, and write it."""

from __future__ import annotations

from posteriori.cli.fit_options import FitColumns, FitOptions, HoldOutOptions, ModelOptions, OutputOptions
from posteriori.cli.messages import work_progress
from posteriori.cli.options import LevelOptions, OptionalTarget, TablePaths


def fit(
    table: TablePaths,
    target: OptionalTarget = None,
    *,
    columns: FitColumns,
    model: ModelOptions,
    labels: LevelOptions,
    hold_out: HoldOutOptions,
    output: OutputOptions,
) -> None:
    """Fit a model to a table, score it by cross-validation, save it.

    Empty cells, NA, N/A, NaN, nan and null are missing, and among numbers marks such as - and ?. Columns that
    identify rows are ignored. Files may be larger than memory, except with --report.
    Details: docs/command_line.md.

    Example:

        posteriori fit penguins.csv --target species --categorical year -o years.posteriori
    """
    options = FitOptions(table, target, columns, model, labels, hold_out, output)
    options.check()
    with work_progress(not output.quiet):
        from posteriori.cli import fitting

        facts = fitting.run(options)

    from posteriori.cli import fit_page, tables

    if output.as_json:
        tables.print_json(facts)
    else:
        fit_page.print_fit(facts, output.details)
