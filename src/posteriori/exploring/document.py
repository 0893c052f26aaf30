"""The explorer of a model or a network: one HTML file, which needs no server and no network."""

from __future__ import annotations

import base64
import hashlib
import os
import zlib
from functools import cache
from importlib.resources import files
from typing import Any

from posteriori.exploring.data import column_ranges, dependences, sampled_rows
from posteriori.javascript import javascript_evaluator
from posteriori.javascript.evaluator_source import joined
from posteriori.javascript.export import javascript_object, page_json
from posteriori.networks import BayesianNetwork
from posteriori.reporting.html_page import HtmlPage
from posteriori.reporting.markup import Html, element

MOST_ROWS = 2000
_MOST_CELLS = 1 << 20  # of the rows together, about 20 MB
_FEWEST_PACKED = 1 << 19  # characters of data: fewer stay legible


class Explorer(HtmlPage):
    """Interactive page about a classifier, a mixture or a network.

    Attributes
    ----------
    title : str
    html : str
        The complete document: model, evaluator, style and script. It loads nothing.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> model = po.NaiveBayes().fit(table, "species")
    >>> page = po.explore(model)
    >>> page.title
    'NaiveBayes: predicting species'
    """


def explore(
    model: Any,
    X: Any = None,
    y: Any = None,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
) -> Explorer:
    """Write a page that answers what-if questions about a model, with any input unknown.

    The page of a classifier has a control for every column, the posterior with its sum of log factors, the value of
    asking each unknown column, the smallest change of one column that changes the prediction, the members of a pool,
    the dependences between columns that trees and k-dependence models learned, and, given labelled rows, the rows with
    the largest log-loss and sliders for prevalence and costs. The page of a network has all variables with their
    marginals, evidence by click, the most probable states, the information of each arrow, and the trails that are
    active between two variables.

    Parameters
    ----------
    model : fitted classifier or mixture of posteriori, or BayesianNetwork
    X : array-like or data frame (n, d), optional
        Rows to look at. **The page contains their cells**, of at most 2,000 rows drawn at random, and of fewer if these
        have more than about a million cells and posteriors: leave X out if the page goes to readers who may not see
        them.
    y : array-like (n,) or str, optional
        The labels of the rows, or the name of their column. Default: the column of the target, if X has it.
    path : path, optional
        File to write the page to. Default: write no file.
    title : str, optional
        Default: the class name of the estimator and the target.

    Returns
    -------
    Explorer

    Raises
    ------
    TypeError, ValueError
        As `to_javascript`; or rows are given with a network; or a label is not one of the classes.
    OSError
        The path is not writable.

    Notes
    -----
    The page works from a file, offline, and under a content security policy that allows its own script and nothing
    else. All numbers are computed in the browser, and equal those of Python up to rounding.

    Confusion matrix, cost and calibration of the rows that a `GenerativeClassifier` was trained on are those of its
    ``out_of_fold_``. Rows count as these if they have the same labels in the same order and the same ranges of numbers.
    Model files do not keep ``out_of_fold_``; the page then says that the figures of training rows are too good.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> model = po.NaiveBayes().fit(load_penguins(), "species")
    >>> po.explore(model).html.startswith("<!DOCTYPE html>")
    True
    """
    written = javascript_object(model)
    if isinstance(model, BayesianNetwork):
        if X is not None:
            raise ValueError("rows are shown for classifiers; explore a network without rows")
        shown: dict[str, Any] = {"model": written, "title": title or model.name or "Bayesian network"}
    else:
        named = type(model).__name__
        target = written["target"]
        title = title or (named if target is None else f"{named}: predicting {target}")
        shown = {"model": written, "title": title, "ranges": column_ranges(model)}
        shown["dependences"] = dependences(model, [one["name"] for one in written["models"]])
        if X is not None:
            shown["rows"] = sampled_rows(model, X, y, most_rows(len(written["columns"]), len(written["classes"])))
    explorer = Explorer(shown["title"], _document(shown))
    if path is not None:
        explorer.save(path)
    return explorer


def most_rows(n_columns: int, n_classes: int) -> int:
    """Return how many rows a page holds: their cells and posteriors are at most `_MOST_CELLS`."""
    return max(1, min(MOST_ROWS, _MOST_CELLS // (n_columns + n_classes)))


def _document(shown: dict[str, Any]) -> str:
    """Return the page with its data, its style and its script."""
    style, script = _style(), _script()
    policy = (
        f"default-src 'none'; script-src '{_hash_of(script)}'; style-src '{_hash_of(style)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("link", rel="icon", href="data:,"),
        element("title", shown["title"]),
        element("style", Html(style)),
    )
    body = element(
        "body",
        element("noscript", element("p", "This page computes in the browser; allow its script to run.")),
        element("div", id="page"),
        _data(shown),
        Html(f'<script type="module">{script}</script>'),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _data(shown: dict[str, Any]) -> Html:
    """Return the element of the data: JSON in which no cell or name can end the element, or that text compressed."""
    text = page_json(shown)
    if len(text) > _FEWEST_PACKED:
        packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
        return Html(f'<script type="text/plain" id="shown">{packed}</script>')
    return Html(f'<script type="application/json" id="shown">{text}</script>')


@cache
def _style() -> str:
    of_report = files("posteriori.reporting").joinpath("page.css").read_text(encoding="utf-8")
    return of_report + files(__package__).joinpath("page", "explorer.css").read_text(encoding="utf-8")


@cache
def _script() -> str:
    evaluator = javascript_evaluator()
    return evaluator + joined(files(__package__).joinpath("page"), "main", known=evaluator)


def _hash_of(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
