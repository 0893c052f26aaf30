"""A page about a fitted classifier: what it learned, how good it is, and why it says what it says."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posteriori.persistence import write_file_atomically
from posteriori.reporting.columns import ColumnFacts, column_facts
from posteriori.reporting.data import ReportData
from posteriori.reporting.features import features_section, tree_section
from posteriori.reporting.held_out import HeldOutPredictions, predict_held_out
from posteriori.reporting.markup import Html, Section, details, element, page, paragraph
from posteriori.reporting.overview import summary, table_section
from posteriori.reporting.rows import explained_section, strangest_section
from posteriori.reporting.scores import candidates_section, scores_section, weights_section
from posteriori.reporting.trust import calibration_section, confusion_section

_WORDS = {
    "Probability": "How sure the model is, from 0 % (impossible) to 100 % (certain).",
    "Odds": "How many times as probable one class is as another: 80 % against 20 % are odds of 4.",
    "Nats": (
        "Logarithms of probabilities: a step of 0.69 nats doubles or halves the odds, one of 2.3 makes them ten times "
        "as great or as small."
    ),
    "Log-loss": (
        "The mean of −log p(true class): 0 if the truth was always said to be certain, the greater the less probable "
        "it was said to be."
    ),
    "AUC": "How often, of two rows of different classes, the one that is of a class is said to be so more probably.",
    "Density": "How close together the values of a column lie there: a high curve is where many rows are.",
    "Bayes’ rule": (
        "How probable a class is, given a row, is how frequent the class is, times how likely it makes such a row, "
        "divided by the sum of that over all classes."
    ),
}


@dataclass(frozen=True)
class Report:
    """A page about a fitted classifier.

    Attributes
    ----------
    title : str
    html : str
        The whole document; it needs no other file and no network.
    """

    title: str
    html: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, beside it first and then renamed, so that no half file is left.

        Parameters
        ----------
        path : path
            By custom ending in ``.html``.

        Raises
        ------
        OSError
            The folder does not exist or may not be written to, or the path is that of a folder.
        """
        write_file_atomically(Path(path), self.html.encode("utf-8", "replace"))

    def _repr_html_(self) -> str:
        """Show the page within a notebook, in a frame, so that the looks of neither touch the other."""
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" title="{html.escape(self.title)}" '
            'style="width:100%;height:80vh;border:1px solid #ddd"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Report({self.title!r}, {len(self.html):,} characters; save(path) writes it)"


def report(
    estimator: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    out_of_fold: Any = None,
    title: str | None = None,
) -> Report:
    """Write a page about a fitted classifier that a person who knows no Bayes can read.

    The table at a glance, scores beside those of guessing, the candidates and the weights of a pool, calibration,
    confusions, feature importance with the class-conditional densities of the most important columns, the tree, the
    strangest rows by log p(x), and five rows explained.

    Parameters
    ----------
    estimator : fitted classifier of posteriori
    X : array-like or data frame (n, d)
        The rows that it has learned from.
    y : array-like (n,) or str
        Their labels, or the column of X that holds them; as in `fit`.
    path : path, optional
        Where to write the page as well.
    out_of_fold : OutOfFold, LeaveOneOut or array-like (n, C), optional
        What was said of rows that had not been learned from, as `model_selection.out_of_fold` and `leave_one_out`
        return it; or p(y | x) itself, as ``estimator.predict_proba(X)`` of rows that are not those of training.
        Default: what the estimator keeps as ``out_of_fold_``, or 5-fold cross-validation of a copy.
    title : str, optional

    Returns
    -------
    Report
        Its ``html`` is one file without script, with all figures in it; ``save(path)`` writes it, and a notebook
        shows it.

    Raises
    ------
    ValueError
        out_of_fold is not of these rows, or a label is none of the classes.
    TypeError
        The estimator is no classifier of posteriori.
    ImportError
        Matplotlib is not installed.
    OSError
        The path cannot be written to.

    Notes
    -----
    Cost: cross-validation where that is not given, a pass for the columns and one for log p(x), and some thousand rows
    for the figures. Rows count once each, unless out_of_fold has weights.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = po.NaiveBayes().fit(penguins, "species")
    >>> page = po.report(model, penguins, "species", title="Penguins")
    >>> page.html.startswith("<!DOCTYPE html>")
    True
    """
    require_matplotlib()
    if path is not None and not Path(path).parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(Path(path).parent)!r} to write the report in")
    subject = ReportData.of(estimator, X, y)
    evaluated = predict_held_out(subject, out_of_fold)
    facts = column_facts(estimator, X)
    title = title or f"What {type(estimator).__name__} has learned of {subject.target}"
    header = summary(subject, evaluated, facts)
    written = Report(title, str(page(title, header, list(_sections(subject, evaluated, facts)), _footer(estimator))))
    if path is not None:
        written.save(path)
    return written


def require_matplotlib() -> None:
    """Raise ImportError, with what to do, where figures cannot be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError('a report needs matplotlib: pip install "posteriori[plot]"') from error


def _sections(subject: ReportData, evaluated: HeldOutPredictions, facts: list[ColumnFacts]) -> Iterator[Section]:
    estimator = subject.estimator
    yield table_section(subject, facts)
    yield scores_section(subject, evaluated)
    if hasattr(estimator, "cv_results_"):
        yield candidates_section(estimator.cv_results_, getattr(estimator, "left_out_", None))
    if hasattr(estimator, "members_"):
        yield weights_section(estimator.weights_, estimator.class_bias_, estimator.classes_.tolist())
    yield calibration_section(subject, evaluated)
    yield confusion_section(subject, evaluated)
    yield features_section(subject, evaluated.importance)
    tree = tree_section(subject)
    if tree is not None:
        yield tree
    yield strangest_section(subject, facts)
    yield explained_section(subject, evaluated)


def _footer(estimator: Any) -> list[Html]:
    from posteriori import __version__

    words = (part for word, text in _WORDS.items() for part in (element("dt", word), element("dd", text)))
    return [
        details("Words", element("dl", *words, class_="words")),
        paragraph(f"Written by posteriori {__version__} about ", element("code", _one_line(estimator)), "."),
    ]


def _one_line(estimator: Any) -> str:
    return " ".join(repr(estimator).split())
