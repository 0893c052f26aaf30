"""What the reference needs: a filter of inherited members, and the help of the commands as it is printed."""

import contextlib
import inspect
import io
import os

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx


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
    """Leave out members that scikit-learn defines: its own documentation describes them."""
    home = (
        getattr(
            inspect.unwrap(thing) if callable(thing) else thing, "__module__", ""
        )
        or ""
    )
    return (
        True
        if home.split(".")[0] in ("sklearn", "builtins", "enum", "abc")
        else None
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the filter, and register the directive."""
    app.add_directive("command-help", CommandHelp)
    app.connect("autodoc-skip-member", skip_foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
