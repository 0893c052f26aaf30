"""The program ``posteriori``: its commands, and their help on terminals of 80 columns."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from posteriori.cli import network
from posteriori.cli.clusters import cluster
from posteriori.cli.comparison import compare
from posteriori.cli.cv import cv
from posteriori.cli.decide import decide
from posteriori.cli.evaluate import evaluate
from posteriori.cli.explain import explain
from posteriori.cli.explore import explore
from posteriori.cli.export import export, sql
from posteriori.cli.files import with_text_options
from posteriori.cli.fit import fit
from posteriori.cli.impute import impute
from posteriori.cli.merging import merge
from posteriori.cli.predict import predict
from posteriori.cli.query import query
from posteriori.cli.records import with_records
from posteriori.cli.report import report
from posteriori.cli.sample import sample
from posteriori.cli.show import show
from posteriori.cli.watch import watch

_OTHERS = "Options"
_LAST = "Text files and spreadsheets"
_GROUPS = {
    "Columns": (
        *("categorical", "columns", "numeric", "kinds", "ignore", "dates"),
        *("classes", "target_is_class", "order"),  # of the target
    ),
    "Model": ("model", "models", "settings", "folds", "groups", "holdout", "holdout_by", "covariance", "seed"),
    _LAST: ("sep", "decimal", "encoding", "missing_values", "skip_rows", "sheet"),
}
_GROUP_OF = {name: group for group, names in _GROUPS.items() for name in names}
_WIDEST = 26  # characters of an option beside which its text begins on the same line


class Command(TyperCommand):
    """A command whose help has its options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, and the options of each group."""
        groups: dict[str, list[tuple[str, str]]] = {_OTHERS: []}
        arguments: list[tuple[str, str]] = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            is_argument = parameter.param_type_name == "argument"
            record = _plain(record[0]), _without_ranges(record[1])
            if is_argument:
                arguments.append((record[0], record[1].removesuffix("  [required]")))  # as the usage says
                continue
            groups.setdefault(_GROUP_OF.get(parameter.name or "", _OTHERS), []).append(record)
        for group in [group for group, records in groups.items() if len(records) == 1 and group != _OTHERS]:
            groups[_OTHERS][-1:-1] = groups.pop(group)  # --help stays last
        last = groups.pop(_LAST, None)
        sections = {"Arguments": arguments, **groups} | ({_LAST: last} if last else {})
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=_WIDEST)


def _plain(option: str) -> str:
    """Return an option with its metavariable, without the brackets of types: N for a number."""
    option = re.sub(r" <list\[str\]>| <bool>| <?path>?$", "", option)
    option = re.sub(r"<(int|float)( range)?>", "N", option)
    return re.sub(r"<(.*)>", r"\1", option)


def _without_ranges(text: str) -> str:
    """Return the help of an option without the range of its number, which errors name."""
    return re.sub(r"  \[[^][]*[<>]=?[^][]*\]$", "", re.sub(r"; x[<>]=\d+\]", "]", text))


def help_of(command: Callable[..., Any]) -> str:
    """Return the docstring of a command for a terminal that wraps paragraphs, except indented ones."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(f"\b\n{part}" if part.startswith(" ") else part.replace("\n", " ") for part in paragraphs)


_COMMANDS: tuple[Callable[..., None], ...] = (
    fit,
    predict,
    evaluate,
    decide,
    explain,
    impute,
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
    watch,
)

_READ_TABLES = {fit, predict, impute, evaluate, explain, compare, cluster, cv, report, explore, watch, network.learn}

app = typer.Typer(
    name="posteriori",
    help="Generative models of tables: they predict classes and numbers, as probabilities.",
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


def add_command(command: Callable[..., None], group: typer.Typer = app) -> None:
    """Add a function to the command line; its signature gives arguments and options, its docstring the help."""
    single = with_records(command)
    with_options = with_text_options(single) if command in _READ_TABLES else single
    group.command(cls=Command, help=help_of(command))(with_options)


for _command in _COMMANDS:
    add_command(_command)

_networks = typer.Typer(help="Bayesian networks: show, sample, learn, convert.", rich_markup_mode=None)
for _command in (network.show, network.sample, network.learn, network.convert):
    add_command(_command, _networks)
app.add_typer(_networks, name="network")
