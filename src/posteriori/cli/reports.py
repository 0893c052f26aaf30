"""What fit does with --report: one page about the model, beside the model file."""

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
    """Refuse, before any work is done, a report that cannot be drawn or has no place.

    Raises
    ------
    Refusal
        The suffix is not that of a page, the folder is absent, the file is that of the table or of the model, or
        Matplotlib is not installed.
    """
    if path.suffix.lower() not in _SUFFIXES:
        raise UserError(f"{str(path)!r} has no suffix of a page; name it .html")
    if path.absolute() == model.absolute():
        raise UserError(f"the report would overwrite the model {str(path)!r}; name another file")
    check_place(path, *tables)
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise UserError('--report needs matplotlib: pip install "posteriori[plot]"')


def write_report(scored: OutOfFold, frame: pl.DataFrame, target: str, path: Path, title: str) -> None:
    """Write the page about a model that has learned from a frame, judged by what was said of rows left out."""
    from posteriori.reporting import report

    report(scored.estimator, frame, target, path, out_of_fold=scored, title=title)
