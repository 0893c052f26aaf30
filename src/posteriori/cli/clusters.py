"""The command ``cluster``: mixtures of several sizes, and the one that the BIC prefers."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from posteriori.cli.checks import columns_named
from posteriori.cli.messages import Refusal, refusing
from posteriori.cli.progress import progress_bar
from posteriori.cli.reading import check_place, names_table, read_frame, stem_of
from posteriori.cli.writing import open_output

if TYPE_CHECKING:
    import polars as pl

_ADDED = ("component", "probability")


class Covariance(StrEnum):
    """The covariances that components can have."""

    full = "full"
    diagonal = "diagonal"
    spherical = "spherical"
    tied = "tied"


def cluster(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A table, as for fit.", show_default=False)],
    components: Annotated[
        str, typer.Option("--components", "-k", metavar="K", help="How many: 3, or 2,4,6, or 2..8 to compare them.")
    ] = "2..8",
    drop: Annotated[
        list[str] | None, typer.Option(metavar="A,B", help="Columns to leave out: identifiers, known classes.")
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Columns that are categorical although they hold numbers."),
    ] = None,
    covariance: Annotated[
        Covariance,
        typer.Option(
            help="Of the numbers in a cluster: full; diagonal, without correlations; spherical, one variance for all "
            "columns; tied, one full covariance for all clusters."
        ),
    ] = Covariance.full,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "--out",
            metavar="FILE",
            help="Where to save the model; default: the table's name with .clusters.posteriori, here.",
        ),
    ] = None,
    assign: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the table here, with each row's component and its probability."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the starts of EM.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the same facts as one JSON document.")] = False,
) -> None:
    """Group the rows of a table by mixture models, and say what each cluster looks like.

    In a cluster numbers are jointly Gaussian, and categories independent; missing cells are integrated out. Of
    several numbers of clusters the one of the least BIC, -2 log p(rows) + parameters x log(rows), is kept and saved.

    Example:

        posteriori cluster penguins.csv -k 2..3 --drop species,year --assign clusters.csv
    """
    sizes = _sizes(components)
    destination = output or Path(f"{stem_of([str(table)])}.clusters.posteriori")
    if names_table(destination):
        raise Refusal(f"{str(destination)!r} has the suffix of a table; name the model NAME.posteriori")
    check_place(destination, table)
    write = open_output(assign, table, destination) if assign is not None else None
    frame = read_frame(table)
    dropped = columns_named(drop, frame.columns, "--drop")
    features = [name for name in frame.columns if name not in dropped]
    if not features:
        raise Refusal("--drop leaves out every column; leave at least one in")
    chosen = columns_named(categorical, features, "--categorical")
    if max(sizes) > frame.height:
        raise Refusal(f"-k asks for {max(sizes)} clusters and {table.name!r} has {frame.height} rows; ask for fewer")
    if write is not None:
        for name in _ADDED:
            if name in frame.columns:
                raise Refusal(f"--assign would add a column {name!r}, which {table.name!r} has; rename it first")

    import polars as pl

    from posteriori.classifiers import MixtureModel
    from posteriori.cli import cluster_facts, tables
    from posteriori.persistence import save
    from posteriori.tables.names import exactly

    rows = frame.select(exactly(*features))
    fitted = []
    with refusing(), progress_bar("clustering", frame.height * len(sizes)) as progress:
        for size in sizes:
            model = MixtureModel(
                size, covariance=covariance.value, categorical_features=chosen or "from_dtype", random_state=seed
            )
            fitted.append(cluster_facts.candidate(model.fit(rows), rows))
            if progress is not None:
                progress(frame.height)
    best = min(fitted, key=lambda one: one.bic)
    with refusing():
        posterior = best.model.predict_proba(rows)
        save(best.model, destination)
    if write is not None:
        write(_assigned(frame, pl.Series(posterior.argmax(axis=1)), pl.Series(posterior.max(axis=1))))
    found = {
        "command": "cluster",
        "table": str(table),
        "covariance": covariance.value,
        **cluster_facts.cluster_facts(rows, fitted, best, posterior),
        "output": str(destination),
        "assigned": None if assign is None else str(assign),
    }
    (tables.print_json if as_json else cluster_facts.print_clusters)(found)


def _assigned(frame: pl.DataFrame, component: pl.Series, probability: pl.Series) -> pl.DataFrame:
    return frame.with_columns(component.alias(_ADDED[0]), probability.alias(_ADDED[1]))


def _sizes(text: str) -> list[int]:
    """Return the numbers of clusters that an option asks for, ascending."""
    between = re.fullmatch(r"\s*(\d{1,6})\s*\.\.\s*(\d{1,6})\s*", text)
    if between:
        first, last = int(between[1]), int(between[2])
        sizes = list(range(first, last + 1))
        if not sizes:
            raise Refusal(f"-k {text} ends before it begins; write {last}..{first}")
    elif re.fullmatch(r"\s*\d{1,6}\s*(,\s*\d{1,6}\s*)*", text):
        sizes = sorted({int(part) for part in text.split(",")})
    else:
        raise Refusal(f"-k {text!r} is no number of clusters; write 3, or 2,4,6, or 2..8")
    if sizes[0] < 1:
        raise Refusal(f"-k {text} asks for no cluster; ask for one at least")
    return sizes
