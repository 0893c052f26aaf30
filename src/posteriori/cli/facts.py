"""The facts that commands print, as plain dictionaries: the same for people and for ``--json``."""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from posteriori.densities import MultivariateGaussianParameters
from posteriori.learning.information import mutual_information
from posteriori.model_selection import metrics
from posteriori.model_selection.against_prior import compare_with_prior
from posteriori.parameter_count import count_parameters
from posteriori.registry import describe_variant
from posteriori.tables import Column, Schema, quote
from posteriori.tables.names import exactly
from posteriori.tables.writing import write_column

if TYPE_CHECKING:
    from posteriori.classifiers import GenerativeEstimator
    from posteriori.cli.summary import Summary
    from posteriori.model import GenerativeModel
    from posteriori.model_selection import OutOfFold
    from posteriori.tables import Scan
    from posteriori.typing import Array

Facts = dict[str, Any]

_FIRST_CATEGORIES = 12
_SCORED_ROWS = 1 << 18  # at a time
_FEWEST_ROWS_TO_DOUBT = 10  # below, as many categories as rows says little


def fit_facts(scan: Scan, summary: Summary, scored: OutOfFold) -> Facts:
    """Return what a fit has found: the columns, how well the model does, and what informs it."""
    estimator = scored.estimator
    schema = estimator.schema_
    model, class_prior = out_of_fold_scores(scored)
    return {
        "rows": summary.n_rows,
        "target": schema.target,
        "classes": [
            {"class": label, "rows": summary.labels.get(category, 0)}
            for label, category in zip(labels_of(estimator), estimator.target_.categories, strict=True)
        ],
        "columns": column_facts(summary, estimator),
        "hints": list(hints(scan, summary, schema)),
        "cross_validation": {
            "folds": int(scored.fold.max()) + 1,
            "rows": len(scored.fold),
            "model": model,
            "class_prior": class_prior,
            **against_prior(scored),
        },
        **parameter_counts(estimator),
        **information(estimator),
        "candidates": candidate_facts(estimator),
        "left_out": getattr(estimator, "left_out_", {}),
    }


def candidate_facts(estimator: Any) -> list[Facts]:
    """Return the cross-validated scores of each candidate of a pool, sorted by log-loss; nothing of another model."""
    results = getattr(estimator, "cv_results_", None)
    if results is None:
        return []
    rows = [dict(zip(results, values, strict=True)) for values in zip(*results.values(), strict=True)]
    for row in rows:
        row["description"] = describe_variant(row["member"])
    return sorted(rows, key=lambda row: row["log_loss"])


def main_member(estimator: Any) -> GenerativeEstimator:
    """Return the model itself, or of a pool the member of most weight."""
    if not hasattr(estimator, "members_"):
        return estimator
    return estimator.members_[max(estimator.weights_, key=estimator.weights_.__getitem__)]


def labels_of(estimator: GenerativeEstimator) -> list[Any]:
    """Return the classes as Python values."""
    return list(write_column(estimator.target_).tolist())


def scores(components: Array, posterior: Array) -> Facts:
    """Return accuracy, log-loss in nats and Brier score."""
    return {
        "accuracy": metrics.accuracy(components, posterior),
        "log_loss": metrics.log_loss(components, posterior),
        "brier_score": metrics.brier_score(components, posterior),
    }


def out_of_fold_scores(scored: OutOfFold) -> tuple[Facts, Facts]:
    """Return the scores of the model, and of its class prior, on rows not seen: means over some rows at a time."""
    sums: list[Facts] = [{}, {}]
    n_rows = len(scored.y_true)
    for start in range(0, n_rows, _SCORED_ROWS):
        rows = slice(start, start + _SCORED_ROWS)
        prior, components = scored.prior[rows], scored.y_true[rows]
        posterior = metrics.fill_undefined(np.exp(scored.log_posterior[rows]), prior)
        for total, predicted in zip(sums, (posterior, prior), strict=True):
            for name, value in scores(components, predicted).items():
                total[name] = total.get(name, 0.0) + value * (len(components) / n_rows)
    return sums[0], sums[1]


def against_prior(scored: OutOfFold) -> Facts:
    """Return by how much the log-loss is above that of the class prior, and whether the columns inform at all."""
    found = compare_with_prior(scored.y_true, scored.posterior, scored.prior, scored.weight)
    return {
        "log_loss_above_prior": found.difference,
        "log_loss_above_prior_se": found.standard_error,
        "verdict": found.verdict,
    }


def information(estimator: Any) -> Facts:
    """Return the features by falling importance: the information that the model's posterior loses without each.

    In nats per row, with its standard error, and on which rows it was measured.
    """
    found = estimator.importance_
    order = np.argsort(-found.information, kind="stable")
    return {
        "information": [
            {
                "feature": estimator.schema_.names[j],
                "nats": float(found.information[j]),
                "standard_error": float(found.standard_error[j]),
            }
            for j in order
        ],
        "information_rows": {"rows": found.n_rows, "held_out": found.held_out},
    }


def parameter_counts(estimator: GenerativeEstimator) -> Facts:
    """Return the number of free parameters, and of those that the full joint distribution would have."""
    if hasattr(estimator, "members_"):
        return {"n_parameters": estimator.n_parameters_, "n_parameters_full_joint": None}
    model = estimator.model_
    numeric = {"gaussian": 0, "poisson": 0}
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
        elif block.density.name in numeric:
            numeric[block.density.name] += len(block.columns)
        else:
            break
    else:
        full = shared + count_parameters(model.n_classes, categorical=categorical, **numeric).full_joint
    return {"n_parameters": model.n_parameters, "n_parameters_full_joint": full}


def column_facts(summary: Summary, estimator: GenerativeEstimator) -> list[Facts]:
    """Return what each feature is, how many of its cells are missing, and what values it has."""
    pooled = hasattr(estimator, "members_")
    name_of = {} if pooled else _distributions(estimator.model_)
    facts = []
    for j, column in enumerate(estimator.schema_.columns):
        cells = summary.columns[column.name]
        found: Facts = {
            "name": column.name,
            "kind": column.kind,
            "distribution": name_of.get(j, "pooled"),
            "missing": cells.missing,
            "missing_share": cells.missing / summary.n_rows,
        }
        if column.kind == "categorical":
            found["n_categories"] = len(column.categories)
            found["first_categories"] = list(column.categories[:_FIRST_CATEGORIES])
        else:
            found |= {"mean": cells.mean, "sd": cells.sd, "min": cells.least, "max": cells.greatest}
            if column.cuts is not None:
                found["cuts"] = list(column.cuts)
        facts.append(found)
    return facts


def _distributions(model: GenerativeModel) -> dict[int, str]:
    """Return what makes each column; of two blocks that make it together, the shared one says so."""
    makers = sorted((block for block in model.blocks if not block.models_missingness), key=lambda block: block.shared)
    return {j: block.density.name for block in makers for j in block.columns}


# Hints --------------------------------------------------------------------------------------------


def hints(scan: Scan, summary: Summary, schema: Schema) -> Iterable[str]:
    """Return what a person may want to change about the columns."""
    constant, binary = [], []
    for column in schema.columns:
        cells = summary.columns[column.name]
        if cells.present >= _FEWEST_ROWS_TO_DOUBT and cells.counts_rows:
            yield (f"{quote([column.name])} counts the rows; leave it out: --ignore {shlex.quote(column.name)}")
        if cells.n_values == 1:
            constant.append(column.name)
        if cells.n_values == 2 and cells.dtype.is_integer() and column.kind == "continuous":
            binary.append(column.name)
        if column.kind != "categorical" or not column.holds_strings or cells.present < _FEWEST_ROWS_TO_DOUBT:
            continue
        n_categories = len(column.categories)
        words = _words_among_numbers(column)
        if words:
            found = scan.frame.select(exactly(column.name).cast(pl.String).is_in(words).sum())
            n_cells = found.collect(engine="streaming").item()
            yield (
                f"{quote([column.name])} would be a number but for {', '.join(map(repr, words))} in {n_cells} "
                f"cell{'s' if n_cells > 1 else ''}; if that means missing, write NA or leave the cell empty"
            )
        elif n_categories > 0.8 * cells.present:
            yield (
                f"{quote([column.name])} has {n_categories} categories in {cells.present} cells: an identifier or "
                f"free text? leave it out: --ignore {shlex.quote(column.name)}"
            )
    if binary:
        yield (
            f"{quote(binary)} {_have(binary)} two values only; if they are codes rather than quantities, "
            f"add --categorical {shlex.quote(','.join(binary))}"
        )
    if constant:
        yield f"{quote(constant)} {_have(constant)} one value only and cannot inform on the class"


def _have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _words_among_numbers(column: Column) -> list[str]:
    """Return the few categories that are no numbers of a column in which all others are."""
    cells = pl.Series([str(category) for category in column.categories])
    words = cells.filter(cells.cast(pl.Float64, strict=False).is_null()).to_list()
    return words if 0 < len(words) <= 3 and len(cells) - len(words) >= _FEWEST_ROWS_TO_DOUBT else []


# Other commands -----------------------------------------------------------------------------------


def evaluation_facts(estimator: GenerativeEstimator, components: Array, posterior: Array) -> Facts:
    """Return how good predictions are, overall, class by class, and by how sure they are."""
    prior = np.broadcast_to(estimator.class_prior_, posterior.shape)
    posterior = metrics.fill_undefined(posterior, prior)
    per_class = metrics.precision_recall(components, posterior)
    bins = metrics.calibration(components, posterior)
    return {
        "rows": len(components),
        "model": scores(components, posterior),
        "class_prior": scores(components, prior),
        "classes": [
            {"class": label, "rows": round(support), "precision": precision, "recall": recall}
            for label, precision, recall, support in zip(
                labels_of(estimator), per_class.precision, per_class.recall, per_class.support, strict=True
            )
        ],
        "confusion": metrics.confusion_matrix(components, posterior),
        "calibration": [
            {"from": low, "to": high, "rows": round(rows), "confidence": confidence, "accuracy": share}
            for low, high, rows, confidence, share in zip(
                bins.edges[:-1], bins.edges[1:], bins.weight, bins.confidence, bins.accuracy, strict=True
            )
        ],
        "expected_calibration_error": bins.expected_error,
    }


def model_facts(estimator: GenerativeEstimator) -> Facts:
    """Return the parameters of a model, column by column, classes in the order of ``classes``.

    A column that tells of the class by being missing has ``p_missing``, p(m_j = 1 | y).
    """
    if hasattr(estimator, "members_"):
        return pool_facts(estimator)
    model = estimator.model_
    name_of = _distributions(model)
    columns: list[Facts] = [
        {"name": column.name, "kind": column.kind, "distribution": name_of[j]}
        for j, column in enumerate(model.schema.columns)
    ]
    for block, parameters in zip(model.blocks, model.parameters, strict=True):
        for position, j in enumerate(block.columns):
            if block.models_missingness and parameters.modelled_columns[position]:
                columns[j]["p_missing"] = np.exp(parameters.log_missing[:, position]).tolist()
            elif not block.models_missingness and j not in model.schema.coded:
                columns[j] |= _numeric_parameters(parameters, position, model.n_components)
    for j in model.schema.coded:
        column = model.schema.columns[j]
        columns[j]["categories"] = list(column.labels)
        columns[j]["probability"] = np.exp(model.log_marginal_of_codes(j)).T
        if column.is_binned:
            columns[j]["cuts"] = list(column.cuts or ())
    classifies = hasattr(estimator, "classes_")
    nats = estimator.feature_information_ if classifies else mutual_information(model)
    covariances = [
        facts
        for block, parameters in zip(model.blocks, model.parameters, strict=True)
        if isinstance(parameters, MultivariateGaussianParameters)
        for facts in _covariance_facts([model.schema.columns[j].name for j in block.columns], parameters, estimator)
    ]
    statistics = getattr(estimator, "statistics_", None)
    return {
        "model": type(estimator).__name__,
        "target": model.schema.target if classifies else "component",
        "rows": None if statistics is None else float(statistics.weight.sum()),
        "classes": labels_of(estimator),
        "prior": np.exp(model.class_log_prior),
        "components": None if not model.of_class else plain_components(estimator),
        **parameter_counts(estimator),
        "columns": [column | {"information": nats[j]} for j, column in enumerate(columns)],
        "covariances": covariances,
        "trees": list(_tree_facts(estimator)),
    }


def pool_facts(estimator: Any) -> Facts:
    """Return the members of a pool with their weights, and what cross-validation said of all candidates."""
    return {
        "model": type(estimator).__name__,
        "target": estimator.schema_.target,
        "rows": float(main_member(estimator).statistics_.weight.sum()),
        "classes": labels_of(estimator),
        "prior": estimator.class_prior_,
        "bias": estimator.class_bias_,
        **parameter_counts(estimator),
        "members": [
            {"member": name, "weight": estimator.weights_[name], "n_parameters": one.n_parameters_}
            for name, one in estimator.members_.items()
        ],
        "candidates": candidate_facts(estimator),
        **information(estimator),
    }


def _tree_facts(estimator: GenerativeEstimator) -> Iterable[Facts]:
    """Return the edges of each tree by falling information, with the class that it is of; None where it is of all."""
    edges = getattr(estimator, "edge_weights_", None)
    if edges is None:
        return
    of_class = edges if any(isinstance(value, dict) for value in edges.values()) else {None: edges}
    for label, weights in of_class.items():
        ordered = sorted(weights.items(), key=lambda item: -item[1])
        found = [{"parent": parent, "child": child, "nats": nats} for (parent, child), nats in ordered]
        yield {"class": label, "edges": found}


def _covariance_facts(
    names: list[str], parameters: MultivariateGaussianParameters, estimator: GenerativeEstimator
) -> Iterable[Facts]:
    """Return each covariance of some columns, with the class that it is of; None where it is that of all."""
    labels = [None] if len(parameters.covariance) == 1 else component_names(estimator)
    for label, covariance in zip(labels, parameters.covariance, strict=True):
        sd = np.sqrt(np.diagonal(covariance))
        yield {"class": label, "columns": names, "covariance": covariance, "correlation": covariance / np.outer(sd, sd)}


def plain_components(estimator: GenerativeEstimator) -> list[Facts]:
    """Return the components of the classes: the name of each, and p(z)."""
    weights = np.exp(estimator.model_.log_prior)
    return [{"name": name, "prior": p} for name, p in zip(component_names(estimator), weights, strict=True)]


def component_names(estimator: GenerativeEstimator) -> list[str]:
    """Return what each component is called: its class, and its number in it where there are several."""
    labels, of_class = labels_of(estimator), estimator.model_.of_class
    if not hasattr(estimator, "classes_"):
        return [f"component {label}" for label in labels]
    if not of_class:
        return labels
    many = np.bincount(of_class)
    return [
        str(labels[c]) if many[c] == 1 else f"{labels[c]} {z - of_class.index(c) + 1}" for z, c in enumerate(of_class)
    ]


def _numeric_parameters(parameters: Any, position: int, n_components: int) -> Facts:
    """Return one column of the fields that hold a number for each component and column."""
    if isinstance(parameters, MultivariateGaussianParameters):
        variance = np.broadcast_to(parameters.covariance[:, position, position], n_components)
        return {"mean": parameters.mean[:, position], "variance": variance}
    fields = {field.name: getattr(parameters, field.name) for field in dataclasses.fields(parameters)}
    return {
        name: value[:, position]
        for name, value in fields.items()
        if isinstance(value, np.ndarray) and value.ndim == 2 and len(value) == n_components
    }


def plain(value: Any) -> Any:
    """Return a value as JSON can write it: NumPy's become Python's, and what is no finite number null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 1 << 53:
        # more digits than a reader of JSON keeps, or, beyond 1e308, than it has numbers for
        return float(value) if value.bit_length() < 1024 else None
    return value
