"""HTML report on a fitted classifier, regressor or joint model: what it learned, and how well it predicts."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from posteriori.classifiers.classifier import Classifier
from posteriori.classifiers.estimator import Estimator
from posteriori.classifiers.mixture import MixtureModel
from posteriori.classifiers.training_record import chosen_class
from posteriori.facts.columns import ColumnFacts, facts_of_rows
from posteriori.model_selection import HeldOut
from posteriori.pool.value import FittedPool
from posteriori.reading import read_table
from posteriori.registry import Subject
from posteriori.reporting.cluster_sections import CLUSTER_WORDS, ClusterReport, cluster_sections, cluster_summary
from posteriori.reporting.data import ReportData, check_address, check_classifier, target_of
from posteriori.reporting.dependences import tree_section
from posteriori.reporting.drift import TableRows
from posteriori.reporting.drift_page import Drift, drift_sections, drift_summary
from posteriori.reporting.features import features_section
from posteriori.reporting.held_out import importance_of, predict_held_out
from posteriori.reporting.joint_data import JointReport
from posteriori.reporting.joint_sections import JOINT_WORDS, joint_sections, joint_summary
from posteriori.reporting.markup import HtmlPage, Section, page, paragraph
from posteriori.reporting.number_data import NumberReport
from posteriori.reporting.number_sections import WORDS, number_sections, number_summary
from posteriori.reporting.overview import summary, table_section
from posteriori.reporting.rows import explained_section, labels_section, strangest_section
from posteriori.reporting.scores import candidates_section, scores_section, weights_section
from posteriori.reporting.trust import calibration_section, confusion_section, thresholds_section
from posteriori.reporting.two_models import TwoModels, model_sections, models_summary
from posteriori.support.formatting import plural
from posteriori.support.markup import Html, details, element
from posteriori.tables import quote
from posteriori.user_warnings import each_once
from posteriori.version import __version__

_WORDS = {
    "Probability": "How confident the model is, from 0 % (impossible) to 100 % (certain).",
    "Odds": "The ratio of the probabilities of two classes: 80 % against 20 % are odds of 4.",
    "Nats": (
        "The unit of natural logarithms of probabilities. A step of 0.69 nats doubles or halves the odds; a step of "
        "2.3 nats multiplies or divides them by ten."
    ),
    "Log-loss": (
        "The mean of −log p(true class). It is 0 if the true class always had probability 100 %, and grows as that "
        "probability falls."
    ),
    "AUC": (
        "Area under the ROC curve: the probability that a row of a class gets a higher probability of that class than "
        "a row of another class."
    ),
    "Precision": "The share of the rows predicted as a class that belong to it.",
    "Recall": "The share of the rows of a class that are predicted as it; also called true positive rate.",
    "F1": "The harmonic mean of precision and recall.",
    "Lift": "The share of a class among the rows ranked first, divided by its share among all rows.",
    "Effect": (
        "What the value of a column adds to the log-odds of a class, averaged over rows whose other columns stay as "
        "they are."
    ),
    "Density": "The probability per unit of a column: the curve is high where many rows are expected.",
    "Bayes’ rule": (
        "The posterior probability of a class is its prior probability times the likelihood of the row given the "
        "class, divided by the sum of these products over all classes."
    ),
}

_DRIFT_WORDS = {
    "Drift": "A difference between earlier and later rows, beyond what chance brings.",
    "Jensen–Shannon divergence": (
        "The information of a cell about which of two tables it comes from, in nats: 0 for equal distributions, "
        "log 2 = 0.69 for distributions that have nothing in common."
    ),
    "p": (
        "The probability of a difference at least as large if both tables came from the same distribution: chi-squared "
        "test of homogeneity, for numbers the smaller p of this and of the rank-sum test, doubled; adjusted for the "
        "number of columns by Holm’s method."
    ),
    "log p(x)": "The logarithm of the density that the model gives to a row, whatever its class.",
    "Nats": _WORDS["Nats"],
    "Log-loss": _WORDS["Log-loss"],
}


class Report(HtmlPage):
    """HTML report on a fitted classifier, regressor or joint model.

    Attributes
    ----------
    title : str
    html : str
        The complete document. It needs no other file and no network.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> model = po.NaiveBayes().fit(table, "species")
    >>> report = po.report(model, table)
    >>> report.title
    'NaiveBayes: predicting species'
    """


def report(
    estimator: Estimator,
    X: Any,
    y: Any = None,
    path: str | os.PathLike[str] | None = None,
    *,
    out_of_fold: Any = None,
    against: Any = None,
    explorer: str | None = None,
    positive: Any = None,
    title: str | None = None,
) -> Report:
    """Write an HTML report on a fitted classifier, regressor or joint model, for readers who do not know Bayes' rule.

    The report has these sections: overview of the table with alerts on columns, scores compared with the class prior,
    candidates and weights of a pool, calibration, confusion matrix, ROC, precision-recall and lift curves with a table
    of thresholds, feature importance with the effect and the class-conditional densities of every column, dependences,
    outliers by log p(x), labels that the held-out predictions contradict, and explanations of five rows with the
    smallest changes that would change the prediction.

    With `against`, an earlier table, the report is about drift instead: how the rows X differ from the earlier ones,
    column by column, in log p(x), in the class shares, and in the scores if both tables have labels. With another
    fitted classifier as `against`, it compares both models on the rows X: their scores with standard errors of paired
    differences, the rows on which they differ, and the importance of the columns.

    The report on a regressor has an overview, the members of the pool with their scores, the predicted against the true
    numbers with their intervals, calibration, residuals by column, the rows farthest from their prediction, and the
    importance and effects of the columns. Training rows are shown with the held-out predictions of the fit; other rows
    are predicted. `out_of_fold`, `against`, `explorer` and `positive` are for classifiers.

    The report on a joint model has a map of the dependences between columns, the columns that follow from others, how
    well the other cells of a row predict each column, the strangest cells and rows, and rows that occur several times.
    It has no target, so that `y` is not used either.

    Parameters
    ----------
    estimator : fitted classifier, regressor or joint model of posteriori
    X : array-like or data frame (n, d)
        The training rows; with `against`, the new rows.
    y : array-like (n,) or str, optional
        The labels, or the name of the column of X that holds them, as in `fit`. Default: the column of the target. With
        `against`, labels are not needed.
    path : path, optional
        File to write the page to. Default: write no file.
    out_of_fold : HeldOut or array-like (n, C), optional
        Out-of-fold predictions, as returned by `model_selection.out_of_fold` and `leave_one_out`; or p(y | x), as
        ``estimator.predict_proba(X)`` for rows that are not training rows: the page calls training rows by that name
        if the model has a record of them, as those of the command line do. Default: the estimator's
        ``out_of_fold_`` if it has one, otherwise 5-fold cross-validation of a copy.
    against : array-like or data frame (m, d), or fitted classifier, optional
        The earlier rows, such as the training rows, whose labels are read from their column of the same name if they
        have it; or another model of the same classes.
    explorer : str, optional
        Address of a page that `explore` has written, such as "explorer.html" beside the report. Every section links to
        it, and explained rows and outliers open there with their cells.
    positive : class, optional
        The class of interest, whose precision, recall and thresholds are shown. Default: that of the fit, else the
        rarer of two classes. Not with `against`.
    title : str, optional
        Default: the class name of the estimator and the target.

    Returns
    -------
    Report
        ``html`` is one document without scripts and with all figures inline. ``save(path)`` writes it, and a notebook
        displays it.

    Raises
    ------
    ValueError
        out_of_fold belongs to other rows, or it or `positive` is given with `against`; or labels are needed and not
        given; or a label or `positive` is not one of the classes, or the classes of two models differ; or a parameter
        for classifiers is given with a regressor or a joint model.
    TypeError
        The estimator is not a classifier, regressor or joint model of posteriori.
    OSError
        The path is not writable.

    Notes
    -----
    Cost: cross-validation if no out-of-fold predictions exist, one pass for the columns, one pass for log p(x), and a
    few thousand rows for the figures. Each row has weight 1 unless out_of_fold has weights. With `against`: one pass
    over each table, of at most 100,000 rows.

    The drift of a column is the Jensen–Shannon divergence of its distributions (Lin, IEEE Transactions on Information
    Theory 37, 1991) over categories, or up to 20 bins of about as many rows of both tables, and missing cells. Its
    test is the chi-squared test of homogeneity, for numbers together with the rank-sum test, with p-values adjusted for
    all columns (Holm, Scandinavian Journal of Statistics 6, 1979).

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = po.NaiveBayes().fit(penguins, "species")
    >>> page = po.report(model, penguins, "species", title="Penguins")
    >>> page.html.startswith("<!DOCTYPE html>")
    True
    >>> later, earlier = penguins[200:], penguins[:200]
    >>> "Drift of columns" in po.report(model, later, against=earlier).html
    True
    """
    if path is not None and not Path(path).parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {str(Path(path).parent)!r} to write the report in; create it first"
        )
    subject = getattr(estimator, "subject", None)
    of_classes = {"out_of_fold": out_of_fold, "against": against, "explorer": explorer, "positive": positive}
    if subject is Subject.NUMBER:
        _refuse_given("a regressor", of_classes)
    if subject in (Subject.COLUMNS, Subject.COMPONENT):
        _refuse_given("a joint model" if subject is Subject.COLUMNS else "clusters", {"y": y, **of_classes})
    if explorer is not None:
        check_address(explorer)
    if against is not None:
        if out_of_fold is not None:
            raise ValueError("out_of_fold is not used with against; remove one of them")
        if positive is not None:
            raise ValueError("positive is not used with against; remove one of them")
    with each_once():
        if isinstance(y, str):  # is no feature, as X shows
            warnings.filterwarnings("ignore", re.escape(f"X has {quote([y])}, which "))
        if subject is Subject.COLUMNS:
            written = _joint_report(estimator, X, title)
        elif subject is Subject.NUMBER:
            written = _number_report(estimator, X, y, title)
        elif subject is Subject.COMPONENT:
            written = _cluster_report(estimator, X, title)
        elif against is None:
            written = _model_report(cast(Classifier, estimator), X, y, out_of_fold, explorer, positive, title)
        else:
            compare = _models_report if hasattr(against, "predict_proba") else _drift_report
            written = compare(cast(Classifier, estimator), X, y, against, explorer, title)
    if path is not None:
        written.save(path)
    return written


def _model_report(
    estimator: Classifier, X: Any, y: Any, out_of_fold: Any, explorer: str | None, positive: Any, title: str | None
) -> Report:
    if y is None:
        y = target_of(estimator, X)
        if y is None:
            raise ValueError("a report needs labels: give y, or against, an earlier table to compare the rows with")
    subject = ReportData.of(estimator, X, y)
    chosen = chosen_class(estimator, positive)  # raises its error before any work
    subject = subject.of_held_out_rows(out_of_fold)
    evaluated = replace(predict_held_out(subject, out_of_fold), order=estimator.target_.order)
    if positive is not None or evaluated.positive is None:
        evaluated = replace(evaluated, positive=chosen)
    facts = facts_of_rows(estimator, X)
    title = title or f"{type(estimator).__name__}: predicting {subject.target}"
    header = summary(subject, evaluated, facts)
    sections = [one for one in _sections(subject, evaluated, facts, explorer) if one is not None]
    return Report(title, str(page(title, header, sections, _footer(estimator, _WORDS), explorer)))


def _refuse_given(kind: str, given: Mapping[str, Any]) -> None:
    for name, one in given.items():
        if one is not None:
            raise ValueError(f"{name} is not used in a report on {kind}; remove it")


def _cluster_report(estimator: Estimator, X: Any, title: str | None) -> Report:
    subject = ClusterReport(cast(MixtureModel, estimator), X)
    facts = facts_of_rows(estimator, X)
    title = title or f"{type(estimator).__name__}: {plural(len(subject.model.weights_), 'cluster')}"
    sections = list(cluster_sections(subject, facts))
    return Report(title, str(page(title, cluster_summary(subject, facts), sections, _footer(estimator, CLUSTER_WORDS))))


def _joint_report(estimator: Estimator, X: Any, title: str | None) -> Report:
    subject = JointReport.of(cast(Any, estimator), X)
    facts = facts_of_rows(estimator, subject.X)
    title = title or f"{type(estimator).__name__}: what columns tell about each other"
    sections = list(joint_sections(subject, facts))
    return Report(title, str(page(title, joint_summary(subject, facts), sections, _footer(estimator, JOINT_WORDS))))


def _number_report(estimator: Estimator, X: Any, y: Any, title: str | None) -> Report:
    subject = NumberReport.of(cast(Any, estimator), X, y)
    facts = facts_of_rows(estimator, X)
    title = title or f"{type(estimator).__name__}: predicting {subject.target}"
    sections = list(number_sections(subject, facts))
    return Report(title, str(page(title, number_summary(subject, facts), sections, _footer(estimator, WORDS))))


def _models_report(
    estimator: Classifier, X: Any, y: Any, against: Any, explorer: str | None, title: str | None
) -> Report:
    for model in (estimator, against):
        check_classifier(model)
    if y is None:
        y = target_of(estimator, X)
    if y is None:
        raise ValueError("a comparison of two models needs labels: give y")
    both = TwoModels.of(estimator, against, X, y)
    title = title or f"{both.names[0]} and {both.names[1]}: predicting {both.target}"
    return Report(
        title, str(page(title, models_summary(both), list(model_sections(both)), _footer(estimator, _WORDS), explorer))
    )


def _drift_report(
    estimator: Classifier, X: Any, y: Any, against: Any, explorer: str | None, title: str | None
) -> Report:
    check_classifier(estimator)
    if y is None:
        y = target_of(estimator, X)
    name = y if isinstance(y, str) else estimator.schema_.target
    before = TableRows.of(estimator, against, name if name in read_table(against).names else None)
    drift = Drift.of(estimator, before, TableRows.of(estimator, X, y))
    title = title or f"{type(estimator).__name__}: drift of the rows for {drift.target}"
    sections = list(drift_sections(drift))
    return Report(title, str(page(title, drift_summary(drift), sections, _footer(estimator, _DRIFT_WORDS), explorer)))


def _sections(
    subject: ReportData, evaluated: HeldOut, facts: list[ColumnFacts], explorer: str | None
) -> Iterator[Section | None]:
    value = subject.estimator.fitted_
    yield table_section(subject, facts)
    yield scores_section(subject, evaluated)
    if value.results is not None:
        yield candidates_section(value.results, value.skipped)
    if value.members:
        yield weights_section(value.weights, cast(FittedPool, value).bias, value.classes.tolist())
    yield calibration_section(subject, evaluated)
    yield confusion_section(subject, evaluated)
    yield thresholds_section(subject, evaluated)
    yield features_section(subject, importance_of(subject, evaluated))
    yield tree_section(subject)
    yield strangest_section(subject, facts, explorer)
    yield labels_section(subject, evaluated)
    yield explained_section(subject, evaluated, explorer)


def _footer(estimator: Estimator, glossary: Mapping[str, str]) -> list[Html]:
    one_line = " ".join(repr(estimator).split())
    words = (part for word, text in glossary.items() for part in (element("dt", word), element("dd", text)))
    return [
        details("Glossary", element("dl", *words, class_="words")),
        paragraph(f"Written by posteriori {__version__} about ", element("code", one_line), "."),
    ]
