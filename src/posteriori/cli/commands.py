"""The program ``posteriori``: one module per command.

The modules of commands import polars, NumPy and the rest of the library inside functions, so that
``posteriori --help`` is fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from posteriori.cli import network
from posteriori.cli.clusters import cluster
from posteriori.cli.comparison import compare
from posteriori.cli.cv import cv
from posteriori.cli.evaluate import evaluate
from posteriori.cli.explain import explain
from posteriori.cli.explore import explore
from posteriori.cli.export import export
from posteriori.cli.fit import fit
from posteriori.cli.help import Command, help_of
from posteriori.cli.merging import merge
from posteriori.cli.predict import predict
from posteriori.cli.query import query
from posteriori.cli.report import report
from posteriori.cli.sample import sample
from posteriori.cli.show import show
from posteriori.cli.sql import sql
from posteriori.cli.text_files import with_text_options

_COMMANDS: tuple[Callable[..., None], ...] = (
    fit,
    predict,
    evaluate,
    explain,
    sample,
    show,
    compare,
    cluster,
    cv,
    merge,
    explore,
    report,
    sql,
    export,
    query,
)

_READ_TABLES = {fit, predict, evaluate, explain, compare, cluster, cv, report, explore, network.learn}

app = typer.Typer(
    name="posteriori",
    help="Generative classification: class priors times class-conditional densities.",
    epilog="A first look: posteriori fit penguins.csv --target species",
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        from posteriori.version import __version__

        print(f"posteriori {__version__}")
        raise typer.Exit


@app.callback()
def _posteriori(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


for _command in _COMMANDS:
    app.command(cls=Command, help=help_of(_command))(
        with_text_options(_command) if _command in _READ_TABLES else _command
    )

_networks = typer.Typer(help="Bayesian networks: show, sample, learn, convert.", rich_markup_mode=None)
for _network_command in (network.show, network.sample, network.learn, network.convert):
    _networks.command(cls=Command, help=help_of(_network_command))(
        with_text_options(_network_command) if _network_command in _READ_TABLES else _network_command
    )
app.add_typer(_networks, name="network")
