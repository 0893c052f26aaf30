"""The table of layers: the rows of layers.toml, and what the docstring of each folder and module says it is for."""

import ast
import tomllib
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]


def source_of(name):
    """Return the file that holds the docstring of a folder or a module of the package."""
    path = ROOT / "src" / "posteriori" / name
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def purpose(name):
    """Return the first two paragraphs of its docstring, which say what it is for."""
    tree = ast.parse(source_of(name).read_text(encoding="utf-8"))
    paragraphs = (ast.get_docstring(tree) or "").split("\n\n")[:2]
    return " ".join(" ".join(paragraphs).split())


def table():
    """Return the table as lines of Markdown."""
    rows = tomllib.loads((ROOT / "layers.toml").read_text(encoding="utf-8"))["rows"]
    lines = ["| row | folder or module | what it is for |", "|-|-|-|"]
    for place, row in enumerate(rows, start=1):
        for name in row:
            shown = name if source_of(name).name == "__init__.py" else f"{name}.py"
            text = purpose(name).replace("|", r"\|")
            lines.append(f"| {place} | `{shown}` | {text} |")
    return lines


class Layers(Directive):
    """Show the table."""

    def run(self):
        """Return its nodes."""
        cell = nodes.container()
        self.state.nested_parse(StringList(table(), "layers.toml"), 0, cell)
        return cell.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("layers", Layers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
