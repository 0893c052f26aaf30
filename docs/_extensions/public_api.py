"""What the reference needs: a filter and an order of members, and the help of the commands as it is printed."""

import contextlib
import inspect
import io
import os

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx import addnodes
from sphinx.application import Sphinx

# Methods in the order in which people need them; the others follow in that of the alphabet.
USED_FIRST = (
    "fit",
    "predict",
    "predict_proba",
    "predict_set",
    "explain",
    "score",
    "score_samples",
    "sample",
    "partial_fit",
    "merge",
)
# Public for other parts of the library, and of no use to who calls a model.
INTERNAL = {"recipe", "reads_counts", "takes_two_values"}


class CommandHelp(Directive):
    """Show what `posteriori COMMAND --help` prints."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        """Run the command line in this process and return its output."""
        from posteriori.cli import main

        command = (
            [] if self.arguments[0] == "posteriori" else self.arguments[0].split()
        )
        printed = io.StringIO()
        os.environ |= {"COLUMNS": "92", "TERM": "dumb"}
        with contextlib.redirect_stdout(printed):
            code = main([*command, "--help"])
        if code:
            raise self.error(
                f"posteriori {self.arguments[0]} --help exited with {code}"
            )
        text = printed.getvalue().strip("\n")
        return [nodes.literal_block(text, text, language="text")]


def skip_foreign(app, what, name, thing, skip, options):
    """Leave out internals, and members that scikit-learn defines: its own documentation describes them."""
    home = (
        getattr(
            inspect.unwrap(thing) if callable(thing) else thing, "__module__", ""
        )
        or ""
    )
    foreign = home.split(".")[0] in ("sklearn", "builtins", "enum", "abc")
    return True if foreign or name in INTERNAL else None


def order_of(member):
    """Return the place of a described member: methods by use, then by name; attributes stay behind them as they are."""
    if member["objtype"] == "method":
        name = member[0]["ids"][0].rsplit(".", 1)[-1]
        if name in USED_FIRST:
            return 0, USED_FIRST.index(name), ""
        return 0, len(USED_FIRST), name
    return 1, 0, ""


def order_members(app, domain, objtype, content):
    """Sort the members of a class, each with the entry of the index that precedes it."""
    members = [node for node in content if isinstance(node, addnodes.desc)]
    if objtype != "class" or not members:
        return
    pieces = []
    for member in members:
        place = content.index(member)
        before = content[place - 1] if place else None
        entry = [before] if isinstance(before, addnodes.index) else []
        pieces.append((order_of(member), [*entry, member]))
    for _, piece in pieces:
        for node in piece:
            content.remove(node)
    for _, piece in sorted(pieces, key=lambda one: one[0]):
        content += piece


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the filter and the order, and register the directive."""
    app.add_directive("command-help", CommandHelp)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("object-description-transform", order_members)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
