"""The prose is plain modern English: banned words and patterns, in documents, docstrings, comments and messages.

`python -m tests.test_prose` prints the findings of all files; with paths, those of these files.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.prose

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "posteriori"

_PER = (
    "row|class|column|cell|feature|label|component|parent|state|table|file|set|fold|second|worker|partition|member"
    "|variable|node|edge"
)
_COUNTED = (
    r"nats?|bits?|bytes?|rows?|cells?|lines?|columns?|parameters?|weights?|numbers?|counts?|seconds?|factors?|trees?"
    r"|tables?|labels?|components?|values?|digits?|bins?|terms?|pass|passes|entry|entries|threads?|jobs?|test"
)

# Why each is banned stands in docs/develop/prose.md.
PATTERNS = {
    "anew": r"\banew\b",
    "nor": r"\bnor\b(?!\()",
    "shall": r"\bshall\b",
    "save for except": r"(?-i:\bsave) (?:those|that|for|where|the|of|in|as)\b"
    r"(?! (?:it|them|model|file|result|fit|loss))",
    "for want of": r"\bfor want of\b",
    "be there": r"\b(?:be|is|are) there\b(?!\?)",
    "told, heard": r"\b(?:told|heard|hears|unheard|teach|teaches|taught)\b",
    "tells of": r"\b(?:tell|tells|telling|says?|saying|said) (?:of|nothing|something|anything|little|much|more|most)\b",
    "stranger": r"\bstrangers?\b",
    "a row for per row": rf"\b(?:one|two|{_COUNTED}) an? (?:{_PER})\b(?!['’])",
    "once a row": rf"\b(?:once|twice|times) an? (?:{_PER})\b",
    "at home, of yore": r"\b(?:of yore|hence|thereof|therein|whereof|wherein|thus|lest|whence|whither|thence)\b",
}
# Of docstrings of the package only: the first words of a clause that names nothing.
HEADLESS = re.compile(r"(?:Return )?what\b", re.IGNORECASE)
_COMPILED = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in PATTERNS.items()}


def built(path: Path) -> bool:
    """Return whether the build of the site wrote a file of docs/."""
    return any(part.startswith("auto_") or part in ("generated", "backreferences") for part in path.parts)


FOLDERS = ("src", "tests", "fuzz", "experiments", "benchmarks", "examples", "docs")
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "Makefile",
    *sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md") if not built(p)),
    *sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "changes").glob("*.md")),
)
EXCEPTIONS = ("tests/test_prose.py",)  # it has to name what it bans
LONGEST_NAME = 60  # of a test: a name that is read at once, and fits into the line of a failure


def prose_of_python(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of every comment and of every string of more than two words: docstrings and messages."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) > 2:
            yield node.lineno, node.value


def prose_of_document(text: str) -> Iterator[tuple[int, str]]:
    """Yield the text of a document outside its code blocks and code spans, with its line."""
    without_blocks = re.sub(r"^```.*?^```$", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL | re.M)
    yield 1, re.sub(r"`[^`\n]*`", "`code`", without_blocks)


def headless(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, pattern and first words of each docstring that begins with a headless clause."""
    nodes = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr)]
    for one in nodes:
        found = HEADLESS.match(str(one.value).lstrip()) if isinstance(one, ast.Constant) else None
        if found:  # of an attribute, too
            yield one.lineno, "what, without a noun", found[0]


def findings(path: Path) -> list[tuple[int, str, str]]:
    """Return line, name of the pattern and matched words of each banned phrase in a file."""
    text = path.read_text(encoding="utf-8")
    pieces = prose_of_python(text) if path.suffix == ".py" else prose_of_document(text)
    found = []
    for line, piece in pieces:
        flat = re.sub(r"\s", " ", piece)  # a phrase may run over the end of a line; positions stay
        for name, pattern in _COMPILED.items():
            found += [(line + piece.count("\n", 0, m.start()), name, m[0]) for m in pattern.finditer(flat)]
    if path.is_relative_to(PACKAGE):
        found += headless(text)
    return sorted(found)


def faulty_names(text: str) -> list[str]:
    """Return the names of tests that are too long, or that a file defines again: pytest runs only the last one."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    count = Counter(node.name for node in nodes if node.name.startswith("test_"))
    return [name for name, times in count.items() if len(name) > LONGEST_NAME or times > 1]


def files() -> list[str]:
    """Return the files that are checked, relative to the root."""
    paths = [p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.py")) if not built(p)]
    code = [p.relative_to(ROOT).as_posix() for p in paths]
    return [*DOCUMENTS, *(name for name in code if name not in EXCEPTIONS)]


def shown(name: str) -> str:
    """Return the findings of a file, one per line."""
    return "\n".join(f"{name}:{line}: {words!r} ({pattern})" for line, pattern, words in findings(ROOT / name))


@pytest.mark.parametrize("name", files())
def test_a_file_is_in_plain_words(name):
    assert not shown(name), f"banned phrases (docs/develop/prose.md):\n{shown(name)}"


@pytest.mark.parametrize(
    "text",
    [
        "nats a row",
        "one a class",
        "Fit it anew.",
        "neither nor",
        "all rows save those of a class",
        "for want of rows",
        "no rows be there",
        "What the model is told",
        "an unseen\nstranger in the table",
        "two tables a column",
    ],
)
def test_a_banned_phrase_is_found(text, tmp_path):
    (tmp_path / "page.md").write_text(text)
    (tmp_path / "code.py").write_text(f'"""A module.\n\n{text}\n"""\n')
    assert findings(tmp_path / "page.md")
    assert findings(tmp_path / "code.py")


@pytest.mark.parametrize("text", ["What a fit learned.", "Return what predicts.", "Return what\nis left."])
def test_a_docstring_without_a_noun_is_found(text):
    assert [line for line, _, _ in headless(f'"""{text}"""')] == [1]
    assert list(headless(f'class A:\n    def f(self):\n        """\n        {text}"""\n    x = 1\n    """{text}"""'))
    assert not list(headless(f'"""The result. {text}"""\nprint("{text.splitlines()[0]}")  # {text.splitlines()[0]}'))


@pytest.mark.parametrize("text", ["Save the model.", "one row per class", "a row", "`nor`", "in a row of a table"])
def test_plain_words_pass(text, tmp_path):
    (tmp_path / "page.md").write_text(text)
    assert findings(tmp_path / "page.md") == []


def test_names_of_tests_are_short_and_defined_once_per_file():
    paths = sorted((ROOT / "tests").rglob("*.py"))
    found = {path.relative_to(ROOT).as_posix(): faulty_names(path.read_text(encoding="utf-8")) for path in paths}
    assert len(found) > 100
    assert not [f"{path}: {name}" for path, names in found.items() for name in names]


def test_a_long_name_and_a_name_defined_again_are_found():
    longest = f"test_{'x' * 55}"
    text = f"def {longest}(): ...\ndef {longest}x(): ...\ndef test_a(): ...\ndef f(): ...\ndef f(): ...\n"
    assert faulty_names(text) == [f"{longest}x"]
    assert faulty_names(f"{text}async def test_a(): ...\n") == [f"{longest}x", "test_a"]


if __name__ == "__main__":
    for argument in sys.argv[1:] or files():
        if found := shown(argument):
            print(found)


EMPTY_NAMES = {"found", "one", "asked", "given"}
MOST_EMPTY_NAMES = 1558  # lower it when there are fewer


def test_locals_with_empty_names_become_fewer():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))]
    stored = [node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name) and not is_read(node)]
    stored += [node.arg for tree in trees for node in ast.walk(tree) if isinstance(node, ast.arg)]
    n_empty = sum(name in EMPTY_NAMES for name in stored)
    assert n_empty <= MOST_EMPTY_NAMES, "give new locals the name of what they hold, not found, one, asked or given"


def is_read(node):
    """Return whether a name in a syntax tree is read, and not set."""
    return isinstance(node.ctx, ast.Load)
