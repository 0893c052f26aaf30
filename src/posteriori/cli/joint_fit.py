"""Fit a joint model of all columns: what the command fit does without --target."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posteriori.cli.files import open_and_summarise, title_of
from posteriori.cli.messages import UserError, as_user_errors
from posteriori.cli.named_columns import columns_named, columns_of_kinds, parts_of_dates
from posteriori.cli.options import split_names
from posteriori.cli.outputs import Origin, check_model_name, check_place, output_at

if TYPE_CHECKING:
    from posteriori.classifiers import JointModel
    from posteriori.reading import Scan
    from posteriori.statistics.description import ScannedTable

_KINDS = ("keep", "categorical")  # of --column


@dataclass(frozen=True)
class JointColumns:
    """The options on columns."""

    ignore: list[str] | None = None
    categorical: list[str] | None = None
    columns: list[str] | None = None
    dates: list[str] | None = None
    targets: list[str] | None = None

    def estimator(self, names: list[str], title: str) -> tuple[JointModel, list[str]]:
        """Return the estimator that reads columns as the options say, and the names of the columns to read.

        Raises
        ------
        UserError
            An option names an unknown column or kind, or no column is left.
        """
        ignored = columns_named(self.ignore, names, "--ignore")
        left = [name for name in names if name not in ignored]
        if not left:
            raise UserError(f"--ignore leaves out all columns of {title!r}; keep at least one")
        chosen = columns_of_kinds(self.columns, left)
        other = next((kind for kind in chosen if kind not in _KINDS), None)
        if other is not None:
            raise UserError(
                f"--column takes {' or '.join(_KINDS)} without --target, not {other}; remove it, or name the target"
            )
        categorical = columns_named(self.categorical, left, "--categorical") + chosen.get("categorical", [])
        keep = chosen.get("keep")

        from posteriori.classifiers import JointModel
        from posteriori.fitting.parameter_groups import Columns

        read = Columns(
            categorical_features=categorical or None,
            keep="all" if keep == ["all"] else keep,
            dates=parts_of_dates(self.dates),
        )
        is_all = split_names(self.targets) == ["all"]
        targets = "all" if is_all else columns_named(self.targets, left, "--targets")
        return JointModel(columns=read, targets=targets), left


def fit_joint(
    tables: list[str],
    columns: JointColumns,
    output: Path,
    force: bool,
    refused: Mapping[str, bool],
    without_rows: bool = False,
) -> dict[str, Any]:
    """Fit a joint model, save it, and return the facts that the command prints.

    Parameters
    ----------
    tables : list of str
    columns : JointColumns
    output : Path
    force : bool
        Whether a file that exists may be replaced.
    refused : mapping from str to bool
        Options of models with a target, and whether they are given.
    without_rows : bool
        Whether the file holds nothing of single rows.

    Raises
    ------
    UserError
        Options do not suit the table, or need a target.
    """
    option = next((option for option, is_given in refused.items() if is_given), None)
    if option is not None:
        raise UserError(
            f"{option} is for a model of one column; name that with --target, or leave out {option} to fit a joint "
            "model of all columns"
        )
    check_model_name(output)
    check_place(output, tables)
    scan, description = open_and_summarise(tables, lambda scan: _described(scan, columns, tables))
    estimator, names = columns.estimator(list(scan.names), title_of(tables))
    origin = Origin("fit", {"target": None, "without_rows": without_rows, **vars(columns)}, tables)
    place = replace(output_at(output, tables, force, origin=origin), without_rows=without_rows)

    from posteriori.cli.fit_facts import hints
    from posteriori.facts.columns import column_facts, facts_of_scan
    from posteriori.facts.joint import columns_of, explained, joint_facts
    from posteriori.tables import IgnoredColumnWarning

    rows = scan.narrowed(names)
    with as_user_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore", IgnoredColumnWarning)  # a hint on the page names the columns
        estimator.fit(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the fit to all rows has printed those that matter
            found = explained(estimator, rows)
        place.save(estimator)
    return {
        "command": "fit",
        "table": " ".join(tables),
        **joint_facts(estimator),
        "target": None,
        "rows": description.n_rows,
        "columns": column_facts(facts_of_scan(estimator, scan, description), description.n_rows),
        "hints": list(hints(scan, description, estimator.schema_, reads_text=False)),
        "can_be_asked": columns_of(estimator),
        **found,
        "output": str(output),
    }


def _described(scan: Scan, columns: JointColumns, tables: list[str]) -> ScannedTable:
    from posteriori.statistics.description import describe_scan

    return describe_scan(scan, columns.estimator(list(scan.names), title_of(tables))[1], None)
