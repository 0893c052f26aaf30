"""The facts that fit prints: columns, cross-validated scores and feature importance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from posteriori.cli.facts import (
    Facts,
    candidate_facts,
    information,
    labels_of,
    parameter_counts,
    scores,
    verdict_on_pool,
)
from posteriori.cli.hints import hints
from posteriori.explain.column_distributions import column_distributions
from posteriori.model_selection.against_prior import compare_with_prior

if TYPE_CHECKING:
    from posteriori.classifiers import GenerativeEstimator
    from posteriori.model_selection import OutOfFold
    from posteriori.statistics.description import Cells, ScannedTable
    from posteriori.tables import Scan
    from posteriori.tables.parts import DatePart

_FIRST_CATEGORIES = 12


def fit_facts(scan: Scan, description: ScannedTable, scored: OutOfFold) -> Facts:
    """Return the facts about a fit: columns, hints, scores, number of parameters and feature importance."""
    estimator = scored.estimator
    schema = estimator.schema_
    model, class_prior = scores(scored.y_true, scored.log_posterior, scored.prior)
    return {
        "rows": description.n_rows,
        "target": schema.target,
        "classes": [
            {"class": label, "rows": description.labels.get(category, 0)}
            for label, category in zip(labels_of(estimator), estimator.target_.categories, strict=True)
        ],
        "columns": _column_facts(description, estimator),
        "hints": list(hints(scan, description, schema)),
        "cross_validation": {
            "folds": int(scored.fold.max()) + 1,
            "rows": len(scored.fold),
            "model": model,
            "class_prior": class_prior,
            **_against_prior(scored),
        },
        **parameter_counts(estimator),
        **information(estimator),
        "candidates": candidate_facts(estimator),
        "pool_verdict": verdict_on_pool(estimator),
        "left_out": getattr(estimator, "skipped_", {}),
    }


def _against_prior(scored: OutOfFold) -> Facts:
    """Return the log-loss minus that of the class prior, with its standard error and a verdict on the columns."""
    found = compare_with_prior(scored.y_true, scored.posterior, scored.prior, scored.weight)
    return {
        "log_loss_above_prior": found.difference,
        "log_loss_above_prior_se": found.standard_error,
        "verdict": found.verdict,
    }


def _column_facts(description: ScannedTable, estimator: GenerativeEstimator) -> list[Facts]:
    """Return kind, distribution, missing cells and values of each feature."""
    pooled = hasattr(estimator, "members_")
    name_of = {} if pooled else column_distributions(estimator.model_)
    facts = []
    for j, column in enumerate(estimator.schema_.columns):
        cells = description.columns[column.source].cells
        found: Facts = {
            "name": column.name,
            "kind": column.shown_kind,
            "distribution": None if column.is_ignored else name_of.get(j, "pooled"),
            "missing": cells.missing,
            "missing_share": cells.missing / description.n_rows,
        }
        if column.part is not None:
            found["part_of"] = column.source
        if column.is_ignored:
            found["reason"] = column.reason
        elif column.kind == "categorical":
            found["n_categories"] = len(column.categories)
            found["first_categories"] = list(column.categories[:_FIRST_CATEGORIES])
        elif column.kind == "counts":
            found["n_words"] = column.width
        else:
            found |= _moments(cells, column.part)
            if column.cuts is not None:
                found["cuts"] = list(column.cuts)
        facts.append(found)
    return facts


def _moments(cells: Cells, part: DatePart | None) -> Facts:
    """Return mean, spread and range of a column of numbers, or of the days or seconds of a column of times."""
    zero, unit = (0, 1) if part is None else (part.zero, part.unit)

    def scaled(value: float | None, start: int = zero) -> float | None:
        return None if value is None else (value - start) / unit

    lowest, highest = scaled(cells.lowest), scaled(cells.highest)
    return {"mean": scaled(cells.mean), "sd": scaled(cells.sd, 0), "min": lowest, "max": highest}
