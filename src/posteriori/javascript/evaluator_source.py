"""The evaluator in JavaScript as one module: its files joined, without their imports from each other."""

from __future__ import annotations

import re
from importlib.abc import Traversable
from importlib.resources import files

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([a-z_]+)\.js";\n', re.MULTILINE)


def javascript_evaluator() -> str:
    """Return the source of the evaluator: one ES module without dependencies, for browsers, Node.js, Deno and Bun.

    It reads models that `to_javascript` writes. Its exports are documented in docs/explore.md.

    Returns
    -------
    str

    Examples
    --------
    >>> import posteriori as po
    >>> "export function load(" in po.javascript.javascript_evaluator()
    True
    """
    return joined(files(__package__).joinpath("evaluator"), "posteriori")


def joined(folder: Traversable, first: str, known: str = "") -> str:
    """Return a module and those that it imports from its folder, in the order in which they depend on each other.

    Imports of names that `known` exports, a text of JavaScript that stands before the module, are left out.
    """
    texts: dict[str, str] = {}

    def visit(name: str) -> None:
        if name in texts:
            return
        path = folder.joinpath(f"{name}.js")
        if not path.is_file() and known:
            return
        text = path.read_text(encoding="utf-8")
        texts[name] = ""  # so that a cycle of imports ends
        for imported in _IMPORT.findall(text):
            visit(imported)
        del texts[name]  # now it comes after what it imports
        texts[name] = _IMPORT.sub("", text).strip("\n")

    visit(first)
    return "\n\n".join(texts.values()) + "\n"
