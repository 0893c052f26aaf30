"""Valid command lines of every command, read from the command line itself, of which one thing is changed."""

from __future__ import annotations

import enum
import functools
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
import typer

import posteriori as po
from fuzz.commands import predict_and_check, run_command, working_in
from fuzz.files import mutate_file, write_table
from fuzz.networks import SUFFIXES, networks, one_changed
from fuzz.tables import ODD_NAMES, Rng, mutate_table, pick, valid_table
from fuzz.target import Target, not_counted
from posteriori.cli.commands import app
from posteriori.registry import MODELS, member_models

_STOCK = 40  # tables with a model fitted to each
_DIALECTS = ("duckdb", "sqlite", "postgres", "mysql", "bigquery", "snowflake", "spark", "tsql")
_ODD_NUMBERS = (
    "0", "1", "3", "-1", "-0", "0.5", "nan", "inf", "-inf", "1e308", "1e-320", "1e400", "99999999999999999999", "1_0",
)  # fmt: skip
_ODD_VALUES = (
    *_ODD_NUMBERS, "", " ", ",", "0x10", "1_000", "١", "½", "1,2", "2..3", "3..2", "1..", "+2", "2 ", "true", "learn",
    "None", "0.999999999", "y", "a,a", "a=2", "=2", "z=2", "a=2,a=3", "--help", "y->y", "utf-16", "\x00",
)  # fmt: skip
_ODD_FILES = (
    "none.csv", "folder", "empty.csv", "t", "", "*.csv", "none*.csv", "-", "..", "x" * 300, ".", "none/out.csv", "\x00",
    "out.xlsx", "out", "out.csv.zst", "model.posteriori", "model.posteriori/out",
)  # fmt: skip
_ODD_ARGUMENTS = ("--json", "--help", "--nothing", "-z", "--", "extra", "--version", "--model", "--target", "-t")
_ALWAYS = {"--model", "--models", "--folds", "--sizes", "--repeats", "--components", "--samples"}  # they keep it short
_ENDINGS = {
    "fit": (".posteriori",), "cluster": (".posteriori",), "merge": (".posteriori",), "network learn": SUFFIXES,
    "report": (".html",), "explore": (".html",), "export": (".json",),
}  # fmt: skip
_TABLES_OUT = (".csv", ".tsv", ".parquet", ".arrow", ".ndjson")


@dataclass(frozen=True)
class _Command:
    """A command, its parameters, and the files and columns that a valid use of it names."""

    name: str
    parameters: list[Any]
    frame: pl.DataFrame
    target: str
    table: str
    network: po.BayesianNetwork
    net: str

    @property
    def features(self) -> list[str]:
        return [name for name in self.frame.columns if name != self.target]

    @property
    def is_text(self) -> bool:
        return ".csv" in self.table or ".tsv" in self.table

    def columns(self, rng: Rng, suits: Callable[[Any], bool] = lambda dtype: True) -> str | None:
        """Return the name of a column whose type suits; None if there is none."""
        names = [name for name in self.features if suits(self.frame.schema[name])]
        return pick(rng, names) if names else None


def _models(rng: Rng, command: _Command) -> str:
    names = ["nb"] if rng.random() < 0.5 else [name for name in MODELS if name != "pool"]
    names = names if command.name in ("cv", "compare") else [name for name in names if name in member_models()]
    return "pool" if rng.random() < 0.02 else pick(rng, names)


def _question(rng: Rng, command: _Command) -> str:
    asked, given = (pick(rng, command.network.cpts) for _ in range(2))
    state = f'="{pick(rng, asked.states)}"' if rng.random() < 0.3 else ""
    evidence = f' | "{given.variable}"="{pick(rng, given.states)}"' if given.variable != asked.variable else ""
    return f'P("{asked.variable}"{state}{evidence})' if rng.random() < 0.9 else "P(*)"


def _evidence(rng: Rng, command: _Command) -> str:
    cpt = pick(rng, command.network.cpts)
    return f'"{cpt.variable}"="{pick(rng, cpt.states)}"'


def _costs(rng: Rng, command: _Command) -> str:
    classes = [
        json.loads(json.dumps(one, default=str)) for one in command.frame[command.target].unique().sort().to_list()
    ]
    spelled = [str(one).lower() if isinstance(one, bool) else str(one) for one in classes]
    costs = {one: {other: float(rng.integers(0, 5)) for other in spelled} for one in spelled}
    Path("costs.json").write_text(json.dumps(costs))
    return "costs.json"


def _edge(rng: Rng, command: _Command) -> str | None:
    one, other = (command.columns(rng) for _ in range(2))
    return f"{one}->{other}" if one != other else None


def _kind_of_column(rng: Rng, command: _Command) -> str | None:
    of_others = ("keep",) if command.name == "cluster" else ("text", "keep")
    kind = pick(rng, ("poisson", "binned", "text", "keep") if command.name == "fit" else of_others)
    suits: dict[str, Callable[[Any], bool]] = {
        "poisson": lambda dtype: dtype.is_integer(),
        "binned": lambda dtype: dtype.is_float(),
        "text": lambda dtype: dtype == pl.String,
    }
    column = command.columns(rng, suits.get(kind, lambda dtype: True))
    return "all=keep" if kind == "keep" and rng.random() < 0.5 else None if column is None else f"{column}={kind}"


_SETTINGS = (
    "time_budget=0.2",
    "unlabelled=learn",
    "unlabelled=ignore",
    "unlabelled_weight=0.5",
    "unlabelled_weight=held-out",
    "components_per_class=2",
    "label_noise=0.1",
    "label_noise=learn",
    "missing=informative",
    "feature_weights=conditional",
    "feature_weights=cells",
    "pool=best",
    "predictive=true",
    "priors=3",
    "max_iter=2",
    "random_state=1",
)


# Of each option whose type does not say what is valid: by its name, or by what the help calls its value.
_VALUES: dict[str, Callable[[Rng, _Command], str | None]] = {
    "TABLE": lambda rng, command: command.table,
    "MODEL": lambda rng, command: "model.posteriori",
    "MODEL...": lambda rng, command: "model.posteriori",
    "NET": lambda rng, command: command.net,
    "OUT": lambda rng, command: f"out{pick(rng, (*SUFFIXES, '.dot'))}",
    "FILE": lambda rng, command: "out.svg",
    "A,B": lambda rng, command: command.columns(rng),
    "NAME": lambda rng, command: command.columns(rng),
    "A->B": _edge,
    "A=x,B=y": _evidence,
    "[EXPRESSION]": _question,
    "--target": lambda rng, command: command.target,
    "--categorical": lambda rng, command: command.columns(rng, lambda dtype: dtype.is_integer()),
    "--numeric": lambda rng, command: command.columns(rng, lambda dtype: dtype.is_integer()),
    "--column": _kind_of_column,
    "--set": lambda rng, command: pick(rng, _SETTINGS),
    "--dates": lambda rng, command: pick(rng, ("parts", "ignore", "month", "days,year", "weekday,month")),
    "--model": _models,
    "--models": _models,
    "--folds": lambda rng, command: pick(rng, ("2", "2", "3")),
    "--sizes": lambda rng, command: str(command.frame.height // 2),
    "--repeats": lambda rng, command: "1",
    "--samples": lambda rng, command: "50",
    "--components": lambda rng, command: pick(rng, ("1", "2", "2,3", "1..2")),
    "--classes": lambda rng, command: "2",
    "--threshold": lambda rng, command: f"{command.frame[command.target].drop_nulls()[0]}=0.3".lower(),
    "--costs": _costs,
    "--row": lambda rng, command: pick(rng, ("0", "2", "0,1", "1-3")),
    "--output": lambda rng, command: f"out{pick(rng, _ENDINGS.get(command.name, _TABLES_OUT))}",
    "--report": lambda rng, command: "out.html",
    "--assign": lambda rng, command: "assigned.csv",
    "--evaluator": lambda rng, command: "evaluator.mjs",
    "--against": lambda rng, command: pick(rng, ("model.posteriori", command.table)),
    "--table": lambda rng, command: pick(rng, ("rows", "(SELECT * FROM t)", "a.b")),
    "--dialect": lambda rng, command: pick(rng, _DIALECTS),
    "--tiers": lambda rng, command: ";".join(command.features),
    "--max-table-size": lambda rng, command: "10000",
    "--sep": lambda rng, command: pick(rng, (",", ";", "|", "tab")) if command.is_text else None,
    "--decimal": lambda rng, command: pick(rng, ".,") if command.is_text else None,
    "--missing-values": lambda rng, command: pick(rng, ("-,?", "low")) if command.is_text else None,
    "--encoding": lambda rng, command: pick(rng, ("utf-8", "latin-1", "utf-16")) if command.is_text else None,
}


def _value(rng: Rng, parameter: Any, command: _Command) -> str | None:
    """Return a valid value of a parameter; None if this table has none."""
    for key in (parameter.opts[0], parameter.metavar):
        if key in _VALUES:
            return _VALUES[key](rng, command)
    hint = parameter.type_descriptor.annotation
    hint = get_args(hint)[0] if get_args(hint) else hint
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return str(pick(rng, list(hint)).value)
    if hint in (int, float):
        low = parameter.min if parameter.min is not None else 0
        number = low + int(rng.integers(0, 3))
        return str(number if parameter.max is None else min(number, parameter.max))
    return "some text"


@functools.cache
def _commands() -> dict[str, list[Any]]:
    """Return the parameters of every command by its name; one without parameters has nothing to change."""

    def of(command: Any, name: str) -> dict[str, list[Any]]:
        if not hasattr(command, "commands"):
            return {name: list(command.params)}
        return {k: v for sub, one in command.commands.items() for k, v in of(one, f"{name} {sub}".strip()).items()}

    return {name: parameters for name, parameters in of(typer.main.get_command(app), "").items() if parameters}


def _spelled(rng: Rng, parameter: Any, value: str) -> list[str]:
    if parameter.param_type_name == "argument":
        return [value, value] if parameter.metavar == "MODEL..." else [value]
    option = pick(rng, parameter.opts)
    return (
        [f"{option}={value}"]
        if option.startswith("--") and (value[:1] == "-" or rng.random() < 0.5)
        else [option, value]
    )


def _valid(rng: Rng, command: _Command) -> dict[str, list[str]]:
    """Return the words of a valid command line by the parameter that they belong to."""
    parts: dict[str, list[str]] = {}
    for parameter in command.parameters:
        is_argument = parameter.param_type_name == "argument"
        share = 0.5 if is_argument else 1.5 / len(command.parameters)
        if not (parameter.required or parameter.opts[0] in _ALWAYS or rng.random() < share):
            continue
        is_flag = getattr(parameter, "is_flag", False)
        value = None if is_flag else _value(rng, parameter, command)
        if is_flag or value is not None:
            parts[parameter.opts[0]] = [pick(rng, parameter.opts)] if is_flag else _spelled(rng, parameter, str(value))
    return parts


def _odd_values(parameter: Any, command: _Command) -> tuple[str, ...]:
    """Return values that a parameter may be given although they suit few tables, or none."""
    hint = str(parameter.type_descriptor.annotation)
    if "Path" in hint or parameter.metavar == "TABLE":
        return _ODD_FILES
    if "int" in hint or "float" in hint:
        return _ODD_NUMBERS
    return (*_ODD_VALUES, *ODD_NAMES, *command.frame.columns, *command.frame.columns)


def _mutate_line(rng: Rng, command: _Command, parts: dict[str, list[str]]) -> None:
    """Change one thing of a command line."""
    kind = int(rng.integers(8))
    texts = [key for key in parts if key in ("question", "--evidence", "--tiers", "--required", "--forbidden")]
    if kind == 0:
        parts["odd"] = [pick(rng, _ODD_ARGUMENTS)]
    elif kind == 1 and parts:
        parts.pop(pick(rng, sorted(parts)))
    elif texts and kind <= 4:
        words = parts[pick(rng, texts)]
        words[-1] = "".join(one_changed(rng, list(words[-1]), [*'"=|(), ', "P(", "\0", "é", "1"]))
    elif kind <= 3 and (optional := [one for one in command.parameters if one.opts[0] not in parts]):
        parameter = pick(rng, optional)
        value = _value(rng, parameter, command)
        parts[parameter.opts[0]] = [parameter.opts[0]] if value is None else _spelled(rng, parameter, value)
    else:
        parameter = pick(rng, command.parameters)
        parts[parameter.opts[0]] = _spelled(rng, parameter, pick(rng, _odd_values(parameter, command)))


@functools.cache
def _stock(k: int) -> tuple[pl.DataFrame, str, Path]:
    """Return a valid table, its target, and the file of a model of it; each is made once per process."""
    rng = np.random.default_rng((k, 28))
    frame, target = valid_table(rng)
    folder = Path(tempfile.mkdtemp(prefix="fuzz-model-"))
    names = [name for name in member_models() if name != "nb"]
    model = "pool" if k % 20 == 19 else "nb" if k % 3 == 0 else names[k % len(names)]
    with not_counted(), working_in(folder):
        frame.write_parquet("table.parquet")
        line = ["fit", "table.parquet", f"--target={target}", "--folds=2", "--output=model.posteriori"]
        if not run_command([*line, f"--model={model}"]) and not run_command([*line, "--model=nb", "--column=all=keep"]):
            raise AssertionError(f"no model can be learned from valid table {k}")
    return frame, target, folder / "model.posteriori"


def run(rng: Rng, folder: Path) -> bool:
    """Run a valid command line of which at most one thing is changed; predict with what `fit` has written."""
    name = pick(rng, ("fit", "fit", "fit", "predict", *_commands()))
    parameters = _commands()[name]
    uses_model = any((parameter.metavar or "").startswith("MODEL") for parameter in parameters)
    frame, target = valid_table(rng)
    if uses_model:
        frame, target, model = _stock(int(rng.integers(_STOCK)))
        shutil.copy(model, folder / "model.posteriori")
    what = pick(rng, ("nothing", "nothing", "table", "table", "line", "line", "line", "bytes"))
    network = pick(rng, networks())
    with working_in(folder):
        po.write_network(network, net := f"net{pick(rng, SUFFIXES)}")
        changed = mutate_table(rng, frame, target) if what == "table" else frame
        table = write_table(rng, changed, folder, "table").name
        command = _Command(name, parameters, frame, target, table, network, net)
        parts = _valid(rng, command)
        if what == "line":
            Path("folder").mkdir()
            Path("empty.csv").touch()
            _mutate_line(rng, command, parts)
        if what == "bytes":
            inputs = [
                table,
                *(["model.posteriori"] if uses_model else []),
                *([net] if name.startswith(("q", "n")) else []),
            ]
            mutate_file(rng, Path(pick(rng, inputs)))
        done = run_command([*name.split(), *(word for part in parts.values() for word in part)])
        if done and name == "fit" and what != "line" and rng.random() < 0.5:
            written = sorted(folder.glob("*.posteriori"))
            return predict_and_check(written[0].name, table)
        if done and name == "predict" and what == "nothing":
            return predict_and_check("model.posteriori", table)
    return done


TARGET = Target("commands", run)
