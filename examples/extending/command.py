"""Add a command: `posteriori classes`, the classes of a model and their prior.

A command is one function in one file of `cli/`. Its signature gives arguments and options (`cli/options.py` holds those
that several commands share), and its docstring the help, which ends with an example. It collects facts, and prints them
as JSON or as a page. What is heavy is imported inside the function, so that `posteriori --help` is quick. Errors of the
user are raised as `UserError` with one sentence.

The function is added to `_COMMANDS` in `cli/commands.py`, in the order of `posteriori --help`; the loop there calls
`add_command` for each of them. A command that reads tables stands in `_READ_TABLES` too, which gives it `--sep`,
`--decimal` and `--encoding`. A section in `docs/api/command_line.md` shows its help, and a file in `changes/` names it.
The fuzzer tries every command by itself; `tests/cli/test_cli.py` holds all of them to one exit code per end and one
sentence per error.
"""

from posteriori.cli.models import load
from posteriori.cli.options import AsJson, ModelPath
from posteriori.registry import Subject


def classes(model: ModelPath, as_json: AsJson = False) -> None:
    """Show the classes of a model and their prior.

    Example:

        posteriori classes penguins.posteriori
    """
    estimator = load(model, Subject.CLASS)

    from posteriori.cli import tables
    from posteriori.facts.model import labels_of

    prior = dict(zip(map(str, labels_of(estimator)), estimator.class_prior_.tolist(), strict=True))
    if as_json:
        tables.print_json({"command": "classes", "prior": prior})
        return
    table = tables.new_table("class", "prior")
    for label, p in prior.items():
        table.add_row(label, f"{p:.4f}")
    tables.print_table(tables.console(), table)


def register() -> None:
    """Add the command, as the loop of `cli/commands.py` does."""
    from posteriori.cli.commands import add_command

    add_command(classes)
