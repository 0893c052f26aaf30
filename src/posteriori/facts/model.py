"""Facts about a model as dictionaries, which commands print as a page or as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from posteriori.classifiers import ChowLiuTree, GenerativeClassifier, TreeAugmentedNaiveBayes
from posteriori.classifiers.classifier import Classifier
from posteriori.classifiers.estimator import OfClasses
from posteriori.classifiers.training_record import kept_figures, kept_sentences
from posteriori.densities import CorrelatedDensity, DescribedDensity, UnrestrictedDensity
from posteriori.explain.words import CharacteristicWord, characteristic_words
from posteriori.facts.columns import distributions
from posteriori.facts.members import main_member
from posteriori.fitting.fitted import Fitted, FittedClasses
from posteriori.learning.importance import mutual_information
from posteriori.model import GenerativeModel, log_marginal_of_codes
from posteriori.model_selection import HeldOut, metrics
from posteriori.model_selection.metrics import area_under_curve, compare_with_prior, pool_verdict
from posteriori.parameter_count import count_full_joint
from posteriori.registry import Subject, describe_model, seen_by
from posteriori.support.typing import Array
from posteriori.tables.arrays import write_column

Facts = dict[str, Any]

_SCORED_ROWS = 1 << 18  # at a time


def candidate_facts(value: FittedClasses) -> list[Facts]:
    """Return the cross-validated scores of each candidate of a pool, sorted by log-loss; [] for another model."""
    results = value.results or {}
    rows = [dict(zip(results, values, strict=True)) for values in zip(*results.values(), strict=True)]
    for row in rows:
        row["sees"] = seen_by(row["member"])
        row["description"] = describe_model(row["member"])
    return sorted(rows, key=lambda row: row["log_loss"])


def verdict_on_pool(value: FittedClasses) -> str:
    """Return a sentence on a candidate with a lower log-loss than the pool; an empty string if there is none."""
    return pool_verdict(value.results or {})


def labels_of(estimator: OfClasses) -> list[Any]:
    """Return the classes as Python values."""
    return list(write_column(estimator.target_).tolist())


def class_of_interest(estimator: OfClasses, judged: HeldOut) -> Any:
    """Return the label of the class of interest; None where there is none."""
    one = judged.figures.of_interest
    return None if one is None else labels_of(estimator)[one]


def scores(judged: HeldOut) -> tuple[Facts, Facts]:
    """Return the scores of predictions and of their class prior, with posteriors of a block of rows in memory.

    The scores are accuracy, log-loss in nats, Brier score, AUC, and precision, recall and F1: means over the classes,
    and those of the class of interest, if there is one.
    A row that no class can produce counts as its prior.
    """
    y_true, log_posterior, prior = judged.y_true, judged.log_posterior, judged.prior
    n_rows, n_classes = log_posterior.shape
    found: list[Facts] = [{"accuracy": 0.0, "log_loss": 0.0, "brier_score": 0.0} for _ in range(2)]
    confusion = np.zeros((2, n_classes, n_classes))
    for start in range(0, n_rows, _SCORED_ROWS):
        rows = slice(start, start + _SCORED_ROWS)
        of_prior, true = prior[rows], y_true[rows]
        for k, predicted in enumerate((metrics.fill_undefined(np.exp(log_posterior[rows]), of_prior), of_prior)):
            share = len(true) / n_rows
            found[k]["accuracy"] += share * metrics.accuracy(true, predicted)
            found[k]["log_loss"] += share * metrics.log_loss(true, predicted)
            found[k]["brier_score"] += share * metrics.brier_score(true, predicted)
            confusion[k] += metrics.confusion_matrix(true, predicted)
    # The priors of the folds differ by chance, and rank no row of a fold above another: their area is 0.5.
    with np.errstate(divide="ignore"):
        ranked = metrics.fill_undefined(log_posterior, np.log(prior))
    area, one = area_under_curve(y_true, ranked), judged.figures.of_interest
    if judged.levels is not None:
        with np.errstate(divide="ignore"):
            baseline = replace(judged, log_posterior=np.log(prior)).levels
        assert baseline is not None
        found[0]["ranked_score"], found[1]["ranked_score"] = judged.levels.ranked_score, baseline.ranked_score
    for facts, one_area, counts in zip(found, (area, 0.5), confusion, strict=True):
        facts["auc"] = one_area
        per_class = metrics.ClassScores.of(counts)
        facts |= {f"{name}_macro": value for name, value in per_class.macro.items()}
        if one is not None:
            facts |= {name: float(getattr(per_class, name)[one]) for name in ("precision", "recall", "f1")}
    return found[0], found[1]


def score_facts(judged: HeldOut) -> Facts:
    """Return the scores, and the log-loss minus that of the class prior, with a verdict on the columns."""
    model, class_prior = scores(judged)
    found = compare_with_prior(judged.y_true, judged.posterior, judged.prior, judged.weight)
    return {
        "rows": len(judged.y_true),
        "positive": class_of_interest(judged.estimator, judged),
        "model": model,
        "class_prior": class_prior,
        "log_loss_above_prior": found.difference,
        "log_loss_above_prior_se": found.standard_error,
        "verdict": found.verdict,
    }


def information(estimator: Classifier) -> Facts:
    """Return the feature importance, sorted: the increase of the log-loss in nats per row if the column is missing.

    The facts include standard errors, groups of columns that say the same, and the rows on which it was measured.
    """
    found = estimator.importance_
    modelled = np.array(estimator.schema_.modelled)
    order = modelled[np.argsort(-found.increase[modelled], kind="stable")]
    return {
        "information": [
            {
                "feature": estimator.schema_.names[j],
                "nats": float(found.increase[j]),
                "standard_error": float(found.standard_error[j]),
            }
            for j in order
        ],
        "information_of_groups": [
            {"features": list(one.columns), "nats": one.increase, "standard_error": one.standard_error}
            for one in sorted(found.groups, key=lambda one: -one.increase)
        ],
        "information_rows": {"rows": found.n_rows, "held_out": found.held_out},
    }


def parameter_counts(value: FittedClasses) -> Facts:
    """Return the number of free parameters of the model and of the full joint distribution; None if it is unknown."""
    if not isinstance(value, Fitted):
        return {"n_parameters": value.posterior.n_parameters, "n_parameters_full_joint": None}
    model = value.model
    numeric: dict[str, tuple[UnrestrictedDensity, int]] = {}  # by name: the density and its number of columns
    categorical: list[int] = []
    full: int | None = None
    shared = 0
    for block, parameters in zip(model.blocks, model.parameters, strict=True):
        if block.models_missingness:
            break
        if block.shared:
            shared += block.density.n_parameters(parameters)
        elif block.density.kind == "categorical":
            categorical += [k for k in model.schema.cardinalities(block.columns) if k]
        elif isinstance(block.density, UnrestrictedDensity):
            _, n_columns = numeric.get(block.density.name, (block.density, 0))
            numeric[block.density.name] = block.density, n_columns + len(block.columns)
        else:
            break
    else:
        n_numeric = sum(density.n_unrestricted(n_columns) for density, n_columns in numeric.values())
        full = shared + count_full_joint(model.n_classes, categorical, n_numeric)
    return {"n_parameters": model.n_parameters, "n_parameters_full_joint": full}


def model_facts(estimator: OfClasses) -> Facts:
    """Return the parameters of a model per column, with the classes in the order of ``classes``.

    A column whose missing cells are informative has ``p_missing``, p(m_j = 1 | y).
    """
    if estimator.fitted_.members:
        return pool_facts(cast(GenerativeClassifier, estimator))
    model, statistics = estimator.fitted_.first.model, estimator.fitted_.first.statistics
    columns: list[Facts] = [
        {"name": column.name, "kind": column.shown_kind, "distribution": distribution}
        | ({"reason": column.reason} if column.is_ignored else {})
        for column, distribution in zip(model.schema.columns, distributions(estimator), strict=True)
    ]
    words = characteristic_words(model, statistics)
    for block, parameters in zip(model.blocks, model.parameters, strict=True):
        for position, j in enumerate(block.columns):
            if block.models_missingness and parameters.modelled_columns[position]:
                columns[j]["p_missing"] = np.exp(parameters.log_missing[:, position]).tolist()
            elif model.schema.columns[j].kind == "counts":
                columns[j] |= _word_facts(model, j, words, labels_of(estimator))
            elif isinstance(block.density, DescribedDensity) and j not in model.schema.coded:
                columns[j] |= block.density.describe(parameters, position)
    scored = {j for block in model.blocks if not block.density.is_normalised for j in block.columns}
    for j in (j for j in model.schema.coded if j not in scored):  # the others have no p(x_j | y)
        column = model.schema.columns[j]
        columns[j]["categories"] = list(column.labels)
        columns[j]["probability"] = np.exp(log_marginal_of_codes(model, j)).T
        if column.is_binned:
            columns[j]["cuts"] = list(column.cuts or ())
    is_class = estimator.subject is Subject.CLASS
    nats = estimator.importance_.increase if is_class else mutual_information(model)
    covariances = [
        facts
        for block, parameters in zip(model.blocks, model.parameters, strict=True)
        if isinstance(block.density, CorrelatedDensity)
        for facts in _covariance_facts(
            [model.schema.columns[j].name for j in block.columns], block.density.covariances(parameters), estimator
        )
    ]
    return {
        "model": type(estimator).__name__,
        "target": model.schema.target if is_class else "component",
        "rows": None if statistics is None else float(statistics.weight.sum()),
        "classes": labels_of(estimator),
        "prior": np.exp(model.class_log_prior),
        "components": None if not model.of_class else _component_facts(estimator),
        **parameter_counts(estimator.fitted_),
        "columns": [column | {"information": nats[j]} for j, column in enumerate(columns)],
        "covariances": covariances,
        "trees": list(_tree_facts(estimator)),
        **held_out_facts(estimator),
    }


def _word_facts(
    model: GenerativeModel, j: int, words: Mapping[str, list[list[CharacteristicWord]]], labels: Sequence[Any]
) -> Facts:
    """Return the number of words of a column of counts or text, and those that distinguish each class."""
    column = model.schema.columns[j]
    found: Facts = {"n_words": column.width}
    if column.name in words:
        found["words"] = [
            {"class": label, "words": [{"word": one.word, "log_odds": one.log_odds} for one in of_class]}
            for label, of_class in zip(labels, words[column.name], strict=True)
        ]
    return found


def pool_facts(estimator: GenerativeClassifier) -> Facts:
    """Return the members of a pool with their weights, and the cross-validated scores of all candidates."""
    statistics = main_member(estimator.fitted_)[1].statistics
    assert statistics is not None  # a pool is learned from rows
    return {
        "model": type(estimator).__name__,
        "target": estimator.schema_.target,
        "rows": float(statistics.weight.sum()),
        "classes": labels_of(estimator),
        "prior": estimator.class_prior_,
        "bias": estimator.class_bias_,
        **parameter_counts(estimator.fitted_),
        "members": [
            {
                "member": name,
                "sees": seen_by(name),
                "weight": estimator.member_weights_[name],
                "n_parameters": one.model.n_parameters,
            }
            for name, one in estimator.fitted_.members.items()
        ],
        "candidates": candidate_facts(estimator.fitted_),
        "pool_verdict": verdict_on_pool(estimator.fitted_),
        **information(estimator),
        **held_out_facts(estimator),
    }


def held_out_facts(estimator: OfClasses) -> Facts:
    """Return the sentences on held-out predictions that fit has printed; none of a model that keeps no figures."""
    if estimator.subject is not Subject.CLASS:
        return {"positive": None, "summary": []}
    found = kept_figures(estimator)
    one = None if found is None else found.of_interest
    return {
        "positive": None if one is None else labels_of(estimator)[one],
        "summary": kept_sentences(estimator),
    }


def _tree_facts(estimator: OfClasses) -> Iterable[Facts]:
    """Yield the edges of each tree, sorted by mutual information, with its class; None if all classes share it."""
    if not isinstance(estimator, TreeAugmentedNaiveBayes | ChowLiuTree):
        return
    edges: dict[Any, Any] = estimator.edge_information_
    of_class = edges if any(isinstance(value, dict) for value in edges.values()) else {None: edges}
    for label, weights in of_class.items():
        ordered = sorted(weights.items(), key=lambda item: -item[1])
        found = [{"parent": parent, "child": child, "nats": nats} for (parent, child), nats in ordered]
        yield {"class": label, "edges": found}


def _covariance_facts(names: list[str], covariances: Array, estimator: OfClasses) -> Iterable[Facts]:
    """Yield each covariance matrix of a block of columns, with its class; None if all classes share it."""
    labels = [None] if len(covariances) == 1 else _component_names(estimator)
    for label, covariance in zip(labels, covariances, strict=True):
        sd = np.sqrt(np.diagonal(covariance))
        yield {"class": label, "columns": names, "covariance": covariance, "correlation": covariance / np.outer(sd, sd)}


def _component_facts(estimator: OfClasses) -> list[Facts]:
    """Return the name and p(z) of each component."""
    weights = np.exp(estimator.fitted_.first.model.log_prior)
    return [{"name": name, "prior": p} for name, p in zip(_component_names(estimator), weights, strict=True)]


def _component_names(estimator: OfClasses) -> list[str]:
    """Return the name of each component: its class, with a number if the class has several components."""
    labels, of_class = labels_of(estimator), estimator.fitted_.first.model.of_class
    if estimator.subject is not Subject.CLASS:
        return [f"component {label}" for label in labels]
    if not of_class:
        return labels
    many = np.bincount(of_class)
    return [
        str(labels[c]) if many[c] == 1 else f"{labels[c]} {z - of_class.index(c) + 1}" for z, c in enumerate(of_class)
    ]
