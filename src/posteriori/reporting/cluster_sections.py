"""Sections of the report on a mixture: its clusters, what tells them apart, and rows that fit none or two of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.classifiers.mixture import MixtureModel
from posteriori.facts.clusters import cells_in_words, informative_columns
from posteriori.facts.columns import ColumnFacts
from posteriori.reporting.markup import Section, bar, cards, number, paragraph, percent, table
from posteriori.reporting.overview import columns_table
from posteriori.support.formatting import count, plural
from posteriori.support.markup import Html, element
from posteriori.support.typing import Array

_MOST_SHOWN = 12  # rows
_SURE = 0.9  # the probability of a cluster from which a row counts as certain

CLUSTER_WORDS = {
    "Cluster": "A component of the mixture: a distribution of rows. A row belongs to each with a probability.",
    "Bits": "How much of the uncertainty about the cluster a column removes on average, when it alone is known.",
    "log p(x)": "The logarithm of the density that the mixture gives to a row. It is low for unusual rows.",
}


@dataclass(frozen=True)
class ClusterReport:
    """A fitted mixture and the rows of a table."""

    model: MixtureModel
    X: Any

    @cached_property
    def posterior(self) -> Array:
        """p(cluster | row), (n, K)."""
        return self.model.predict_proba(self.X)

    @cached_property
    def log_evidence(self) -> Array:
        """Log p(x) in nats, (n,)."""
        return np.asarray(self.model.score_samples(self.X))

    @cached_property
    def certainty(self) -> Array:
        """The probability of the most probable cluster of each row, (n,)."""
        return np.asarray(self.posterior.max(axis=1))


def cluster_summary(subject: ClusterReport, facts: Sequence[ColumnFacts]) -> list[Html]:
    """Return the opening sentence of the page and the cards with its key figures."""
    n_rows, missing = len(subject.posterior), sum(one.cells.missing for one in facts)
    sure = float((subject.certainty >= _SURE).mean())
    sentence = paragraph(
        "Which groups of rows are alike? ",
        element(
            "strong", f"{percent(sure)} of the rows belong to one cluster with a probability of {_SURE:.0%} or more."
        ),
        " A cluster is a distribution, and no class: name it by what it holds.",
    )
    of_cells = percent(missing / max(n_rows * len(facts), 1)) if missing else "none"
    key_figures = [
        ("Rows", count(n_rows), ""),
        ("Columns", str(len(facts)), ""),
        ("Clusters", str(subject.posterior.shape[1]), ""),
        ("Missing cells", count(missing), of_cells),
    ]
    return [sentence, cards(key_figures)]


def cluster_sections(subject: ClusterReport, facts: Sequence[ColumnFacts]) -> Iterator[Section]:
    """Yield the sections of the page."""
    lead = "Missing cells are not imputed: the model integrates them out."
    yield Section("table", "Data overview", lead, (columns_table(facts, len(subject.posterior)),))
    yield _sizes_section(subject)
    yield _columns_section(subject)
    yield _between_section(subject)
    yield _strange_section(subject)


def _sizes_section(subject: ClusterReport) -> Section:
    best = subject.posterior.argmax(axis=1)
    lines = []
    for z, share in enumerate(subject.model.weights_.tolist()):
        rows = subject.certainty[best == z]
        sure = percent(float(rows.mean())) if len(rows) else "–"
        lines.append([str(z), f"{len(rows):,}", percent(share), bar(share), sure])
    head = ["cluster", "rows", "p(cluster)", "", "mean probability of its rows"]
    lead = "A row counts for its most probable cluster."
    return Section("clusters", "Clusters", lead, (table("Clusters", head, lines),))


def _columns_section(subject: ClusterReport) -> Section:
    lead = (
        "Mean ± standard deviation of a number, or the most frequent category with its share, in each cluster. The "
        "most informative column comes first."
    )
    columns = informative_columns(subject.model)
    head = ["column", "bits", *(f"cluster {z}" for z in range(subject.posterior.shape[1]))]
    lines = [[one["name"], number(one["information"] / np.log(2.0), 2), *cells_in_words(one)] for one in columns]
    grid = table("Columns by cluster", head, lines, text=(0, *range(2, len(head))))
    return Section("columns", "What tells them apart", lead, (grid,))


def _between_section(subject: ClusterReport) -> Section:
    lines = []
    for row in np.argsort(subject.certainty, kind="stable")[:_MOST_SHOWN].tolist():
        p = subject.posterior[row]
        nearest = np.argsort(-p, kind="stable")[:2].tolist()
        lines.append([f"row {row}", "; ".join(f"{z} ({percent(float(p[z]))})" for z in nearest)])
    head = ["row (from 0)", "most probable clusters"]
    grid = table(f"{plural(len(lines), 'row')} between clusters", head, lines, text=(0, 1), stacks=True)
    return Section("between", "Rows between clusters", "The rows whose cluster is least certain.", (grid,))


def _strange_section(subject: ClusterReport) -> Section:
    order = np.argsort(subject.log_evidence, kind="stable")[:_MOST_SHOWN]
    best = subject.posterior.argmax(axis=1)
    lines = [[f"row {row}", number(float(subject.log_evidence[row]), 4), str(best[row])] for row in order.tolist()]
    head = ["row (from 0)", "log p(x)", "most probable cluster"]
    lead = "The rows of the lowest density: they fit no cluster. Errors of entry and unusual cases are found here."
    grid = table(f"{plural(len(lines), 'row')} of lowest log p(x)", head, lines, text=(0,), stacks=True)
    return Section("strange", "Outliers", lead, (grid,))
