"""The command cluster: mixtures with several numbers of components, and the one with the lowest BIC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.files import read_frame, stem_of
from posteriori.cli.messages import UserError, as_user_errors, progress_bar
from posteriori.cli.named_columns import columns_named, kept_and_text, parts_of_dates
from posteriori.cli.options import AsJson, Categorical, Dates, Force, Kept, Quiet, TablePath
from posteriori.cli.outputs import Origin, check_model_name, output_at, table_at

if TYPE_CHECKING:
    import polars as pl

    from posteriori.facts.clusters import Candidate

_ADDED = ("component", "probability")


class Covariance(StrEnum):
    """Constraint on the covariance matrices of the components."""

    full = "full"
    diagonal = "diagonal"
    spherical = "spherical"
    tied = "tied"


def cluster(
    table: TablePath,
    components: Annotated[
        str,
        typer.Option("--components", "-k", metavar="K", help="Number of clusters: 3; 2,4,6 or 2..8 compares."),
    ] = "2..8",
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", "--drop", metavar="A,B", help="Columns to leave out, such as known classes."),
    ] = None,
    categorical: Categorical = None,
    kinds: Kept = None,
    dates: Dates = None,
    numeric: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Columns of 2 to 10 whole numbers that are quantities."),
    ] = None,
    covariance: Annotated[
        Covariance,
        typer.Option(help="Covariance of the numbers of a cluster. tied: one for all."),
    ] = Covariance.full,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            "--out",
            metavar="FILE",
            help="Where to save the model. Default: TABLE.clusters.posteriori.",
        ),
    ] = None,
    assign: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write the rows with their clusters."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the initialization of EM.")] = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Cluster the rows of a table by mixture models.

    Within a cluster, numbers are jointly Gaussian and categories independent; missing cells are integrated out. Of
    several numbers of clusters, the one with the lowest BIC is saved. A column of 2 to 10 distinct whole numbers is
    categorical unless --numeric names it. Details: docs/command_line.md.

    Example:

        posteriori cluster penguins.csv -k 2..6 --ignore species,year --assign clusters.csv
    """
    sizes = _sizes(components)
    destination = output or Path(f"{stem_of([str(table)])}.clusters.posteriori")
    check_model_name(destination)
    options = {
        "components": sizes,
        "ignore": ignore,
        "categorical": categorical,
        "kinds": kinds,
        "dates": dates,
        "numeric": numeric,
        "covariance": covariance.value,
        "seed": seed,
    }
    place = output_at(destination, [table], force, origin=Origin("cluster", options, [table]))
    write = table_at(assign, [table], force, others=[destination]) if assign is not None else None
    frame = read_frame(table)
    columns = _columns(frame.columns, ignore, categorical, kinds, numeric, dates)
    if max(sizes) > frame.height:
        raise UserError(f"-k asks for {max(sizes)} clusters, but {table.name!r} has {frame.height} rows; ask for fewer")
    taken = next((name for name in _ADDED if name in frame.columns), None)
    if write is not None and taken is not None:
        raise UserError(f"--assign adds a column {taken!r}, which {table.name!r} already has; rename it first")

    import polars as pl

    from posteriori.cli import model_page, tables
    from posteriori.facts.clusters import cluster_facts
    from posteriori.tables.polars import exactly

    rows = frame.select(exactly(*columns.features))
    fitted, codes = _fit(rows, columns, sizes, covariance.value, seed, not quiet)
    best = min(fitted, key=lambda one: one.bic)
    with as_user_errors():
        posterior = best.model.predict_proba(rows)
        place.save(best.model)
    if write is not None:
        write(_assigned(frame, pl.Series(posterior.argmax(axis=1)), pl.Series(posterior.max(axis=1))))
    found = {
        "command": "cluster",
        "table": str(table),
        "covariance": covariance.value,
        "taken_as_categories": codes,
        "edge": _edge(sizes, best.model.n_components, frame.height),
        **cluster_facts(rows, fitted, best, posterior),
        "output": str(destination),
        "assigned": None if assign is None else str(assign),
    }
    (tables.print_json if as_json else model_page.print_clusters)(found)


def _edge(sizes: Sequence[int], best: int, n_rows: int) -> dict[str, Any] | None:
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


@dataclass(frozen=True)
class _ChosenColumns:
    """Names of the features, of those declared as categorical, as numeric, or to be kept; and the parts of dates."""

    features: list[str]
    categorical: list[str]
    numeric: list[str]
    kept: Any
    dates: Any


def _columns(
    names: Sequence[str],
    ignore: list[str] | None,
    categorical: list[str] | None,
    kinds: list[str] | None,
    numeric: list[str] | None,
    dates: list[str] | None,
) -> _ChosenColumns:
    ignored = columns_named(ignore, names, "--ignore")
    features = [name for name in names if name not in ignored]
    if not features:
        raise UserError("--ignore leaves out all columns; keep at least one")
    columns = _ChosenColumns(
        features,
        columns_named(categorical, features, "--categorical"),
        columns_named(numeric, features, "--numeric"),
        kept_and_text(kinds, features, of_text=False)["keep"],
        parts_of_dates(dates),
    )
    both = next((name for name in columns.categorical if name in columns.numeric), None)
    if both is not None:
        raise UserError(f"--categorical and --numeric both name {both!r}; remove it from one of them")
    return columns


def _fit(
    rows: pl.DataFrame, columns: _ChosenColumns, sizes: list[int], covariance: str, seed: int, progress_wanted: bool
) -> tuple[list[Candidate], list[str]]:
    """Return a fitted mixture per number of components, and the columns of whole numbers taken as categories."""
    from posteriori.classifiers import MixtureModel
    from posteriori.classifiers.mixture import numeric_codes
    from posteriori.facts.clusters import candidate
    from posteriori.fitting.parameter_groups import Columns
    from posteriori.reading import read_table

    fitted = []
    with as_user_errors(), progress_bar("clustering", rows.height * len(sizes), progress_wanted) as progress:
        declared = (*columns.categorical, *columns.numeric)
        codes = [name for j in numeric_codes(read_table(rows)) if (name := columns.features[j]) not in declared]
        chosen = [*columns.categorical, *codes] or "from_dtype"
        for size in sizes:
            model = MixtureModel(
                size,
                covariance=covariance,
                columns=Columns(categorical_features=chosen, keep=columns.kept, dates=columns.dates),
                random_state=seed,
            )
            fitted.append(candidate(model.fit(rows), rows))
            if progress is not None:
                progress(rows.height)
    return fitted, codes


def _assigned(frame: pl.DataFrame, component: pl.Series, probability: pl.Series) -> pl.DataFrame:
    return frame.with_columns(component.alias(_ADDED[0]), probability.alias(_ADDED[1]))


def _sizes(text: str) -> list[int]:
    """Parse the numbers of clusters of -k; return them in ascending order."""
    between = re.fullmatch(r"\s*(\d{1,6})\s*\.\.\s*(\d{1,6})\s*", text)
    if between:
        first, last = int(between[1]), int(between[2])
        sizes = list(range(first, last + 1))
        if not sizes:
            raise UserError(f"-k {text} is an empty range; write {last}..{first}")
    elif re.fullmatch(r"\s*\d{1,6}\s*(,\s*\d{1,6}\s*)*", text):
        sizes = sorted({int(part) for part in text.split(",")})
    else:
        raise UserError(f"-k {text!r} is not a number of clusters; write 3, or 2,4,6, or 2..8")
    if sizes[0] < 1:
        raise UserError(f"-k {text} asks for no clusters; ask for at least one")
    return sizes
