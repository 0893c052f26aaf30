"""Messages of the library in the words of the command line: options and commands in place of calls in Python."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable


def _kept(found: re.Match[str]) -> str:
    names = ",".join(map(str, ast.literal_eval(found[1])))
    return f"--column {shlex.quote(f'{names}=keep')}"


# A pattern, and what stands in its place.
_IN_OPTIONS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"(?<=pass )columns=po\.Columns\(keep=(\[.*?\])\) \(--column NAME=keep on the command line\)", _kept),
    (r"pass \w+=True \((--[\w-]+) on the command line\)", r"add \1"),
    (r"columns=po\.Columns\(dates=\[[^]]+\]\)", "--dates year,month"),
    (r'labels=po\.Labels\(unlabelled="?([^")]+)"?\)', r"--set unlabelled=\1"),
    (r"(name (?:it|them) in )categorical_features", r"\1--categorical"),
    (r"; see skipped_(, or name it in members=\[…\] to try it)?", "; --json lists all that are left out"),
    (r'fit with language="(\w+)"', r"fit with --for \1"),
    (r"ask for a range, \('(.*?)': \(low, high\)\)", r"ask for a range, \1 in [low, high]"),
    (r"score by predict_to or to_javascript", "score by posteriori predict, or posteriori export,"),
    (r"posteriori\.reading\.quantile_classes\(\w+, (\d+)\)", r"--classes \1"),
    (r"fit a JointModel\b", "fit without --target"),
    (
        r"(Regressor), not a network; read it by posteriori\.load",
        r"\1, not a network; posteriori predict gives the number of a row, network learn makes a network of a table",
    ),
    (
        r"a JointModel, not a network; read it by posteriori\.load",
        "a joint model, not a network; posteriori query, explore, show and sample take it",
    ),
    (
        r"not a network; read it by posteriori\.load",
        "not a network; predict --proba gives P(class | row); fit without --target makes a model of questions",
    ),
    (r'(?<![\w.])distributions="(\w+)"', r"--column NAME=\1"),
    (r'(?<![\w.])(backoff|feature_weights|label_noise|missing|pooling|shrinkage)="(\w+)"', r"--set \1=\2"),
)


def in_options(text: str) -> str:
    """Return a message of the library with the options of the command line in place of parameters in Python."""
    for pattern, instead in _IN_OPTIONS:
        text = re.sub(pattern, instead, text)
    return text
