"""The option --report of fit: a page about the model, beside the model file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from posteriori.cli.messages import UserError
from posteriori.cli.reading import check_place

if TYPE_CHECKING:
    import polars as pl

    from posteriori.model_selection import OutOfFold

_SUFFIXES = (".html", ".htm")


def check_report(path: Path, tables: Sequence[Path], model: Path) -> None:
    """Check that a report can be written, before any work is done.

    Raises
    ------
    UserError
        The suffix is not .html, the folder does not exist, the file is that of the table or of the model, or
        Matplotlib is not installed.
    """
    if path.suffix.lower() not in _SUFFIXES:
        raise UserError(f"{str(path)!r} does not have the suffix of a web page; name it .html")
    if path.absolute() == model.absolute():
        raise UserError(f"the report would overwrite the model {str(path)!r}; name another file")
    check_place(path, *tables)
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise UserError("--report needs matplotlib: pip install matplotlib")


def write_report(scored: OutOfFold, frame: pl.DataFrame, target: str, path: Path, title: str) -> None:
    """Write the report on a model and its training rows, with scores from the out-of-fold predictions."""
    from posteriori.reporting import report

    report(scored.estimator, frame, target, path, out_of_fold=scored, title=title)
