"""The commands about Bayesian networks: network show, sample, learn and convert."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from posteriori.cli.files import read_frame
from posteriori.cli.messages import UserError, as_user_errors, note, work_progress
from posteriori.cli.named_columns import columns_named
from posteriori.cli.options import AsJson, DrawSeed, Force, Ignore, OutputTable, Quiet, RowCount
from posteriori.cli.outputs import output_at, table_at

if TYPE_CHECKING:
    import polars as pl

    from posteriori.networks import BayesianNetwork

ENDINGS = ".bif, .xmlbif, .bifxml, .xml, .net, .dne, .xdsl, .uai, .json or .posteriori"
_BINS = 4
_MOST_SHOWN = 1000  # variables; terminals keep about as many lines

NetworkPath = Annotated[
    Path,
    typer.Argument(metavar="NET", help=f"A network: {ENDINGS}.", show_default=False),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="How much rows of probability tables may differ from a sum of 1.",
        show_default=False,
    ),
]
MaxTableSize = Annotated[
    int | None,
    typer.Option(
        metavar="CELLS",
        min=1,
        help="Most cells of the tables of inference. Default: 134 million.",
        show_default=False,
    ),
]


class SearchName(StrEnum):
    """Algorithm of structure learning."""

    hill_climbing = "hill-climbing"
    chow_liu = "chow-liu"
    pc = "pc"
    mmhc = "mmhc"


class ScoreName(StrEnum):
    """Score that hill climbing maximises."""

    bic = "bic"
    aic = "aic"
    bdeu = "bdeu"
    k2 = "k2"


def load_network(path: Path, tolerance: float | None = None, max_table_size: int | None = None) -> BayesianNetwork:
    """Read a network from a file of a supported format."""
    from posteriori.networks import read_network

    if not path.exists():
        raise UserError(f"there is no file {str(path)!r}")
    with asking(path):
        return read_network(path, tolerance=tolerance, max_table_size=max_table_size)


@contextlib.contextmanager
def asking(path: Path) -> Iterator[None]:
    """Turn errors of a network, and exhausted memory, into UserError."""
    try:
        with as_user_errors():
            yield
    except MemoryError:
        raise UserError(
            f"there is not enough memory for the tables of {str(path)!r}; lower --max-table-size to see how large they "
            "are, and use --method sampling for questions whose tables are too large"
        ) from None


def show(
    network: NetworkPath,
    tolerance: Tolerance = None,
    max_table_size: MaxTableSize = None,
    as_json: AsJson = False,
) -> None:
    """Show a network: its size, and the states and parents of each variable.

    Example:

        posteriori network show penguins.bif
    """
    net = load_network(network, tolerance, max_table_size)
    continuous = {one.variable for one in net.gaussians}
    variables = [
        {"name": name, "states": [] if name in continuous else list(net.states(name)), "parents": list(parents)}
        for name, parents in net.dag.parents.items()
    ]
    found = {
        "command": "network show",
        "network": str(network),
        "n_variables": len(net.variables),
        "n_edges": len(net.edges),
        "n_parameters": net.n_parameters,
        "variables": variables,
    }
    _print_json(found) if as_json else _print_network(found)


def sample(
    network: NetworkPath,
    rows: RowCount = 10,
    evidence: Annotated[str, typer.Option(metavar="A=x,B=y", help="Evidence: states that each row has.")] = "",
    output: OutputTable = None,
    seed: DrawSeed = None,
    tolerance: Tolerance = None,
    max_table_size: MaxTableSize = None,
    force: Force = False,
) -> None:
    """Draw exact samples from a network, optionally given evidence.

    Example:

        posteriori network sample penguins.bif -n 5 --evidence island=Dream --seed 1
    """
    write = table_at(output, [network], force)
    net = load_network(network, tolerance, max_table_size)
    with asking(network):
        from posteriori.joint.questions import Variables, read_findings

        findings = read_findings(evidence, Variables(list(net.variables))) if evidence.strip() else {}
        given = states_of(net, findings)
        write(net.sample(rows, given or None, random_state=seed))


def learn(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A table.", show_default=False)],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help=f"Where to write: {ENDINGS}."),
    ],
    method: Annotated[SearchName, typer.Option(help="Algorithm of structure learning.")] = SearchName.hill_climbing,
    score: Annotated[ScoreName, typer.Option(help="Score that hill climbing maximises.")] = ScoreName.bic,
    required: Annotated[
        list[str] | None,
        typer.Option(metavar="A->B", help="An edge that must be present. Can be given several times."),
    ] = None,
    forbidden: Annotated[
        list[str] | None,
        typer.Option(metavar="A->B", help="An edge that must be absent. Can be given several times."),
    ] = None,
    tiers: Annotated[
        str,
        typer.Option(metavar="A,B;C", help="Groups of columns in the order of time: no edge leads to an earlier one."),
    ] = "",
    significance: Annotated[
        float, typer.Option(metavar="P", help="Of the tests of pc and mmhc: larger p-values count as independent.")
    ] = 0.05,
    max_parents: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Maximum number of parents per variable (hill climbing, mmhc).",
            show_default=False,
        ),
    ] = None,
    ignore: Ignore = None,
    quiet: Quiet = False,
    binned: Annotated[bool, typer.Option("--binned", help="Cut numeric columns at their quartiles.")] = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Learn a network from a table, and save it.

    Rows may lack cells: hill-climbing and mmhc then alternate with EM, and the other methods take each test on the rows
    that have its columns. Numeric columns with many values become continuous variables (hill-climbing, or pc and mmhc
    if all are numeric), which only .posteriori files hold; --binned cuts them into intervals instead.

    Example:

        posteriori network learn penguins.csv --method chow-liu --binned --output penguins.bif

        posteriori network learn penguins.csv --binned --required "species->sex" --ignore year --output birds.bif
    """
    from posteriori.networks.formats.files import format_to_write
    from posteriori.tables.polars import exactly

    place = output_at(output, [table], force)
    with as_user_errors():
        ending = format_to_write(output)[1]
    if ending == ".dot":
        raise UserError(f".dot holds the graph alone; learn {output.stem}.json, and write it by network convert")
    frame = read_frame(table)
    dropped = columns_named(ignore, frame.columns, "--ignore")
    frame = frame.select(exactly(*(name for name in frame.columns if name not in dropped)))
    if not frame.width:
        raise UserError(f"{table.name!r} has no column left; a network needs a variable")
    _note_identifiers(frame)
    if binned:
        frame = _binned(frame)

    from posteriori.networks import StructureSearch, learn_network, write_network

    is_tree = method is SearchName.chow_liu
    with as_user_errors():
        search = StructureSearch(
            cast(Any, method.value.replace("-", "_")),
            score=None if is_tree else score.value,
            max_parents=None if is_tree else max_parents,
            required=parse_edges(required, "--required"),
            forbidden=parse_edges(forbidden, "--forbidden"),
            tiers=parse_tiers(tiers),
            significance=significance,
        )
        with work_progress(not quiet):
            net = learn_network(frame, search)
        with place.writing() as path:
            write_network(net, path)
    found = {
        "command": "network learn",
        "table": str(table),
        "rows": frame.height,
        "method": method.value,
        "n_parameters": net.n_parameters,
        "edges": [{"parent": parent, "child": child} for parent, child in net.edges],
        "output": str(output),
    }
    _print_json(found) if as_json else _print_learned(found)


def _note_identifiers(frame: pl.DataFrame) -> None:
    """Print which columns identify rows, and how to leave them out: as variables they have nothing to say."""
    from posteriori.reading import read_table
    from posteriori.reading.column_kinds import find_identifiers

    for column in find_identifiers(read_table(frame), range(frame.width)).values():
        note(f"column {column.name!r}: {column.reason}; to leave it out, add --ignore {shlex.quote(column.name)}")


def convert(
    network: NetworkPath,
    output: Annotated[
        Path,
        typer.Argument(metavar="OUT", help=f"Where to write: {ENDINGS}, or .dot (the graph).", show_default=False),
    ],
    tolerance: Tolerance = None,
    max_table_size: MaxTableSize = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Convert a network to another format, which the ending of OUT names.

    .uai has no names and no properties, and .dot no tables; the other formats keep all.

    Example:

        posteriori network convert penguins.bif penguins.xdsl
    """
    from posteriori.networks import write_network
    from posteriori.networks.formats.files import format_to_write

    place = output_at(output, [network], force)
    with as_user_errors():
        format_to_write(output)
    net = load_network(network, tolerance, max_table_size)

    with as_user_errors(), place.writing() as path:
        write_network(net, path)
    found = {
        "command": "network convert",
        "network": str(network),
        "n_variables": len(net.variables),
        "n_edges": len(net.edges),
        "n_parameters": net.n_parameters,
        "output": str(output),
    }
    _print_json(found) if as_json else _print_converted(found)


def _binned(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table whose numeric columns with more values than bins are cut at their quartiles."""
    import numpy as np
    import polars as pl

    from posteriori.learning.cut_points import quantile_cuts
    from posteriori.tables import Column

    columns = []
    for series in frame:
        if not series.dtype.is_numeric() or series.drop_nulls().n_unique() <= _BINS:
            columns.append(series)
            continue
        series = series.cast(pl.Float64)  # a decimal cannot be compared with every cut point
        numbers = series.drop_nulls().to_numpy()
        cuts = quantile_cuts(numbers, np.ones(len(numbers)), _BINS).tolist()
        labels = list(map(str, Column(series.name, "continuous", cuts=tuple(cuts)).labels))
        position = sum((series >= cut).cast(pl.UInt32) for cut in cuts)
        found = [None if k is None else labels[k] for k in position]
        columns.append(pl.Series(series.name, found, dtype=pl.Enum(labels)))  # in the order of the numbers
    return pl.DataFrame(columns)


def parse_edges(written: list[str] | None, option: str) -> list[tuple[str, str]]:
    """Parse smoke->lung, or smoke → lung."""
    edges = []
    for text in written or ():
        ends = [end.strip() for end in re.split(r"->|→", text)]
        if len(ends) != 2 or not all(ends):
            raise UserError(f"{option} {text!r} is no edge; write it as parent->child")
        edges.append((ends[0], ends[1]))
    return edges


def parse_tiers(text: str) -> list[list[str]] | None:
    """Parse age,sex;smoke;lung,xray; None for an empty text."""
    tiers = [[name.strip() for name in tier.split(",") if name.strip()] for tier in text.split(";")]
    return [tier for tier in tiers if tier] or None


def states_of(net: BayesianNetwork, findings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the states that findings name; a variable without one stays without."""
    return {name: None if one is None else state_of(net, name, one) for name, one in findings.items()}


def state_of(net: BayesianNetwork, name: str, written: Any) -> Any:
    """Return the state with this spelling; states that are numbers or booleans are compared as text.

    A number also stands for the interval that holds it. The value of a continuous variable is a number.
    """
    from posteriori.networks.graph.naming import interval_with, require_variable, state_code

    require_variable(name, net.dag.parents)
    if not isinstance(written, str):
        raise UserError(f"of a network, one state of a variable is known; write {name}=STATE")
    if name in {one.variable for one in net.gaussians}:
        try:
            return float(written)
        except ValueError:
            raise UserError(f"{name!r} is continuous; {written!r} is no number") from None
    states = net.states(name)
    if written in states:
        return written
    spelled = [{str(state), str(state).lower()} if isinstance(state, bool) else {str(state)} for state in states]
    code = next((k for k, spellings in enumerate(spelled) if written in spellings), None)
    if code is None:
        with contextlib.suppress(ValueError):
            code = interval_with(float(written), states)
    return states[state_code(name, written, states) if code is None else code]


def _print_json(found: dict[str, Any]) -> None:
    from posteriori.cli.tables import print_json

    print_json(found)


def _print_network(found: dict[str, Any]) -> None:
    from posteriori.cli.tables import console, label_text, new_table, print_table

    out = console()
    out.print(
        f"{found['network']}: {found['n_variables']} variables, {found['n_edges']} edges, "
        f"{found['n_parameters']:,} parameters"
    )
    table = new_table("variable", "states", "parents", left=3)
    for variable in found["variables"][:_MOST_SHOWN]:
        table.add_row(
            label_text(variable["name"]),
            ", ".join(map(label_text, variable["states"])) or "continuous",
            ", ".join(map(label_text, variable["parents"])) or "–",
        )
    print_table(out, table)
    more = found["n_variables"] - _MOST_SHOWN
    if more > 0:
        out.print(f"… and {more:,} more variables; --json lists all")


def _print_converted(found: dict[str, Any]) -> None:
    from posteriori.cli.tables import console

    out = console()
    out.print(f"{found['network']}: {found['n_variables']} variables, {found['n_edges']} edges")
    out.print(f"saved to {found['output']}")


def _print_learned(found: dict[str, Any]) -> None:
    from posteriori.cli.tables import console, label_text, new_table, print_table

    out = console()
    out.print(f"{found['table']}: {found['rows']} rows")
    table = new_table("parent", "child", left=2)
    for edge in found["edges"]:
        table.add_row(label_text(edge["parent"]), label_text(edge["child"]))
    print_table(out, table)
    out.print(f"{found['n_parameters']:,} parameters")
    out.print(f"saved to {found['output']}")
