"""Single rows: outliers, doubtful labels, explained predictions, and what would change them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from posteriori.classifiers.classifier import Classifier
from posteriori.classifiers.estimator import estimator_of
from posteriori.explain import Explanation
from posteriori.explain.sums import merge_classes
from posteriori.facts.columns import ColumnFacts
from posteriori.model import with_cells
from posteriori.model_selection import HeldOut
from posteriori.plotting.reading import Feature, cells_of, posterior_of, read_batch
from posteriori.reporting.data import ReportData, case_links
from posteriori.reporting.held_out import importance_of
from posteriori.reporting.markup import Section, number, numbers, paragraph, percent, table, tables, times
from posteriori.support.formatting import cell_text, count, listed, plural, shortened
from posteriori.support.markup import Html, details, element
from posteriori.support.typing import Array
from posteriori.tables import Batch
from posteriori.tables.rows import take_rows

_VALUES = 60  # of a number
_MOST_CATEGORIES = 60


@dataclass(frozen=True)
class Change:
    """Change of one cell after which another class is the most probable one."""

    column: str
    # before, after: the cells as text
    before: str
    after: str
    label: int  # the index of the class that is predicted after the change
    probability: float  # of this class
    # for a number, the share of the rows between both values; for a category, the share of the rows that do not have
    # the new one
    distance: float


def smallest_changes(estimator: Classifier, rows: Batch, row: Batch, columns: Sequence[int]) -> list[Change]:
    """Return for each column the smallest change of a cell of one row that changes the predicted class, smallest first.

    The values of `rows` are tried: 60 quantiles of a number, and up to 60 categories. Columns without such a change,
    and those whose cell is missing, do not appear in the result.
    """
    fitted = posterior_of(estimator)
    predicted = int(np.nan_to_num(fitted.log_posterior(row), nan=-np.inf)[0].argmax())
    changes = []
    for j in columns:
        own, seen = float(cells_of(row, j)[0]), cells_of(rows, j)
        seen = seen[~np.isnan(seen)]
        if np.isnan(own) or not len(seen):
            continue
        column = fitted.schema.columns[j]
        values, distance = _values(own, seen, column.kind == "categorical")
        if not len(values):
            continue
        posterior = np.nan_to_num(np.exp(fitted.log_posterior(with_cells(row, j, values))))
        other = np.flatnonzero(posterior.argmax(axis=1) != predicted)
        if not len(other):
            continue
        k = int(other[np.lexsort((-posterior[other].max(axis=1), distance[other]))[0]])
        before, after = (
            cell_text(column.categories[int(cell) - 1] if column.kind == "categorical" else float(cell))
            for cell in (own, values[k])
        )
        label = int(posterior[k].argmax())
        changes.append(Change(column.name, before, after, label, float(posterior[k, label]), float(distance[k])))
    return sorted(changes, key=lambda change: change.distance)


def _values(own: float, seen: Array, categorical: bool) -> tuple[Array, Array]:
    """Return the values to try, all different from the own one, and the distance of each."""
    if categorical:
        codes, counts = np.unique(seen.astype(int), return_counts=True)
        order = np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]
        order = order[codes[order] != int(own)]
        return codes[order], 1.0 - counts[order] / len(seen)
    # Observed values only, so that whole numbers stay whole and nothing lies out of the range.
    values = np.unique(np.quantile(seen, np.linspace(0.0, 1.0, _VALUES), method="nearest"))
    values = values[values != own]
    ordered = np.sort(seen)
    rank = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / (2 * len(seen))
    own_rank = (np.searchsorted(ordered, own, "left") + np.searchsorted(ordered, own, "right")) / (2 * len(seen))
    return values, np.abs(rank - own_rank)


_MOST = 100
_MOST_UNFOLDED = 15
_DOUBTFUL = 0.05  # p(recorded class)


def labels_section(subject: ReportData, evaluated: HeldOut) -> Section | None:
    """Return the rows with p(recorded class) below 5 %, the least probable first; None for one class."""
    if len(subject.labels) < 2:
        return None
    posterior, of_truth = evaluated.filled, evaluated.of_truth
    doubtful = np.flatnonzero(of_truth < _DOUBTFUL)
    order = doubtful[np.argsort(of_truth[doubtful], kind="stable")]
    # A calibrated model gives a row a recorded class of probability p with probability p.
    expected = float(np.where(posterior < _DOUBTFUL, posterior, 0.0).sum())
    unseen = " by models that did not see the row" if evaluated.rows_are == "held-out rows" else ""
    lead = (
        f"Rows whose recorded class has a very low probability{unseen}. Some labels are wrong; others are right and "
        "the row is unusual. Check them first where the probability is lowest."
        + (" A model fits the labels that it was trained on, so it finds few of them." if not unseen else "")
    )
    found = (
        f"The recorded class has a probability below {percent(_DOUBTFUL)} in {plural(len(order), 'row')} of "
        f"{count(len(of_truth))}. If all labels were right and all probabilities calibrated, about "
        f"{number(expected, 2)} would be expected."
    )
    contents: list[Html] = [paragraph(found)]
    if len(order):
        rows = [
            [
                f"row {subject.labelled[position]}",
                subject.labels[evaluated.y_true[position]],
                percent(float(of_truth[position])),
                subject.labels[evaluated.predicted[position]],
                percent(float(evaluated.confidence[position])),
            ]
            for position in order[:_MOST].tolist()
        ]
        head = ["row (from 0)", f"recorded {subject.target}", "probability", "predicted", "probability of it"]
        captions = "Least probable recorded classes", f"Rows {_MOST_UNFOLDED + 1} to {len(rows)}"
        summary = f"{len(rows) - _MOST_UNFOLDED} more"
        contents += tables(captions, head, rows, _MOST_UNFOLDED, summary, text=(0, 1, 3))
    return Section("labels", "Doubtful labels", lead, tuple(contents))


_STRANGEST = 10
_USUAL_ROWS = 1000  # reference sample for unusual cells
_MOST_REASONS = 3
_MOST_CHANGED = 30  # columns whose cells are changed
_MOST_SHOWN = 4  # changes of a row
_MOST_STEPS = 8
_MOST_CLASSES = 4
_MOST_WORDS = 10  # of a row
_LONGEST_WORD = 30  # characters
_RARE = 0.01  # a cell is unusual if at most this share of its column is as unlikely


def strangest_section(subject: ReportData, facts: Sequence[ColumnFacts], explorer: str | None = None) -> Section | None:
    """Return the rows of lowest log p(x), with their unusual cells; None if the model has no log p(x)."""
    evidence = subject.log_evidence
    if evidence is None:
        return None
    order = np.argsort(evidence, kind="stable")[:_STRANGEST]
    finite = evidence[np.isfinite(evidence)]
    low, middle, high = np.quantile(finite, [0.25, 0.5, 0.75]) if len(finite) else 3 * [np.nan]
    lead = (
        "The rows of lowest density under the model, whatever their class. Data entry errors and unusual cases are "
        "found here. log p(x) is the log-density of a row; half of all rows lie between "
        f"{number(low, 3)} and {number(high, 3)}."
    )
    reasons = _reasons(subject, facts, order)
    links = case_links(subject.estimator, subject.X, order, explorer)
    rows = [
        [
            _linked(f"row {row}", link),
            number(evidence[row], 4),
            _label(subject, row),
            listed(why, 9) if why else "the combination of cells",
        ]
        for row, why, link in zip(order.tolist(), reasons, links, strict=True)
    ]
    head = ["row (from 0)", "log p(x)", subject.target, "unusual cells"]
    grid = table(f"{plural(len(rows), 'row')} of lowest log p(x)", head, rows, text=(0, 2, 3), stacks=True)
    note = ""
    if any(one.cells.missing for one in facts):
        note = "A row is judged by its observed cells only."
    typical = f"The median of log p(x) is {number(middle, 3)}. "
    return Section("strange", "Outliers", lead, (grid, paragraph(typical + note, class_="note")))


def _linked(text: str, link: str | None) -> Html | str:
    return text if link is None else element("a", text, href=link)


def _label(subject: ReportData, row: int) -> str:
    position = int(subject.components[row])
    return subject.labels[position] if position >= 0 else "no label"


def _reasons(subject: ReportData, facts: Sequence[ColumnFacts], rows: Array) -> list[list[str]]:
    """Return the unusual cells of each row: cells whose log p(x_j) is among the lowest of the column.

    A cell is compared by its marginal density under the model, not by its distance from the mean: in a bimodal column
    the mean itself can be an improbable value.
    """
    usual, seen = _log_marginals(subject, subject.sampled(_USUAL_ROWS))
    own, cells = _log_marginals(subject, rows)
    present = np.maximum(np.count_nonzero(~np.isnan(usual), axis=0), 1)
    finite = np.isfinite(usual)
    mean = np.where(finite, usual, 0.0).sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    share = np.stack([np.count_nonzero(usual <= row, axis=0) for row in own]) / present
    share = np.where(np.isnan(own), np.inf, np.maximum(share, 1.0 / present))
    reasons = []
    for position in range(len(rows)):
        order = np.lexsort((own[position] - mean, share[position]))
        strange = [int(j) for j in order if share[position, j] <= _RARE]
        reasons.append(
            [_unusual(facts[j], cells[position, j], share[position, j], seen[:, j]) for j in strange[:_MOST_REASONS]]
        )
    return reasons


def _log_marginals(subject: ReportData, rows: Array) -> tuple[Array, Array]:
    """Return log p(x_j), (n, d), NaN where missing and for words; and the cells as numbers or codes."""
    estimator = subject.estimator
    source = estimator._source(take_rows(subject.X, rows))
    schema = source.schema

    def read(batch: Batch) -> Array:
        return np.stack([cells_of(batch, j) for j in range(len(schema.columns))], axis=1)

    cells = source.map(read)
    found = np.full(cells.shape, np.nan)
    for j in range(len(schema.columns)):
        present = ~np.isnan(cells[:, j])
        if present.any():
            found[present, j] = Feature.of(estimator, j).log_density(cells[present, j])
    return found, cells


def _unusual(facts: ColumnFacts, cell: float, share: float, seen: Array) -> str:
    """Return the text of an unusual cell, with the usual values of its column: the middle 90 % of the cells seen."""
    if facts.counts is not None:
        position = int(cell) - 1
        name = f"{facts.column.name} = {cell_text(facts.column.categories[position])}"
        return f"{name} ({plural(facts.counts[position], 'such row')})"
    name = f"{facts.column.name} = {cell_text(float(cell))}"
    if np.isnan(seen).all():
        return name
    low, high = np.nanquantile(seen, [0.05, 0.95], method="nearest")
    middle = f"90 % of cells are from {' to '.join(numbers([float(low), float(high)]))}"
    usual = f"90 % of cells are {number(float(low), 4)}" if low == high else middle
    return f"{name} ({usual}; {percent(share)} are as unlikely)"


@dataclass(frozen=True)
class Example:
    """Row to explain: a title, and its position among the evaluated rows."""

    title: str
    position: int


def choose_examples(subject: ReportData, evaluated: HeldOut) -> list[Example]:
    """Choose up to five rows by their predictions: typical, confident, uncertain, wrong, and an outlier."""
    truth, right, sure = evaluated.of_truth, evaluated.right, evaluated.confidence
    ranked = np.sort(evaluated.filled, axis=1)
    margin = ranked[:, -1] - ranked[:, -2] if evaluated.filled.shape[1] > 1 else ranked[:, -1]
    wanted = [
        ("A typical row", np.argsort(np.abs(truth - np.median(truth)), kind="stable")),
        ("Most confident and correct", np.argsort(np.where(right, -sure, np.inf), kind="stable")),
        ("Least certain", np.argsort(margin, kind="stable")),
        ("Most confident and wrong", np.argsort(np.where(right, np.inf, -sure), kind="stable")),
    ]
    if subject.log_evidence is not None:
        wanted.append(("Strongest outlier", np.argsort(subject.log_evidence[subject.labelled], kind="stable")))
    if right.all():
        wanted[3] = ("Correct with the lowest probability", np.argsort(truth, kind="stable"))
    taken: list[Example] = []
    for title, order in wanted:
        position = next((int(p) for p in order if int(p) not in {one.position for one in taken}), None)
        if position is not None:
            taken.append(Example(title, position))
    return taken


def explained_section(subject: ReportData, evaluated: HeldOut, explorer: str | None = None) -> Section:
    """Return some rows with the contribution of each cell to the prediction."""
    if not subject.estimator._posterior.has_factors:
        why = "The model combines its trees by the arithmetic mean, so that no prediction is a product of factors."
        return Section("explained", "Explained predictions", why, ())
    examples = choose_examples(subject, evaluated)
    X = take_rows(subject.X, subject.labelled[[one.position for one in examples]])
    explanation = subject.estimator.explain(X)
    lead = (
        "How the model computes a prediction. It starts from the prior odds of the two most probable classes; each "
        "cell then multiplies the odds by a factor, and the product is exactly the posterior odds. Bars to "
        "the right (blue) favour the first class, bars to the left (orange) the second. The rows and their titles are "
        f"chosen by the {evaluated.predictions_are}; the factors are those of the final model."
    )
    ruled = explanation if subject.lens_name is None else estimator_of(subject.main_member).explain(X)
    batch = read_batch(subject.estimator, X)
    usual = read_batch(subject.estimator, take_rows(subject.X, subject.sampled(_USUAL_ROWS)))
    importance = importance_of(subject, evaluated).increase
    modelled = np.array(subject.estimator.schema_.modelled)
    columns = modelled[np.argsort(-importance[modelled], kind="stable")][:_MOST_CHANGED].tolist()
    links = case_links(subject.estimator, X, range(len(examples)), explorer)
    articles = (
        element(
            "article",
            *_article(subject, evaluated, explanation, row, one, links[row]),
            *_changes(subject, usual, batch.rows(np.array([row])), columns, len(modelled)),
            *_bayes_rule(subject, ruled, row),
        )
        for row, one in enumerate(examples)
    )
    return Section("explained", "Explained predictions", lead, tuple(articles))


def _article(
    subject: ReportData,
    evaluated: HeldOut,
    explanation: Explanation,
    row: int,
    example: Example,
    link: str | None,
) -> Iterator[Html]:
    posterior = np.nan_to_num(explanation.posterior[row])
    order = np.argsort(-explanation.log_joint[row], kind="stable")
    position, truth = example.position, subject.label_phrases[evaluated.y_true[example.position]]
    yield element("h3", f"{example.title}: ", _linked(f"row {subject.labelled[position]}", link))
    after = [f"{subject.label_phrases[c]}: {percent(posterior[c])}" for c in order[:3]]
    ranked = np.argsort(-evaluated.filled[position], kind="stable")
    before = [f"{subject.label_phrases[c]}: {percent(float(evaluated.filled[position, c]))}" for c in ranked[:3]]
    kind = evaluated.predictions_are.capitalize()
    yield paragraph("True class: ", element("strong", truth), f". {kind}: {listed(before)}.")
    yield paragraph(f"Prediction of the final model: {listed(after)}. Its factors:", class_="note")
    if len(order) > 1:
        yield _steps(subject, explanation, row, int(order[0]), int(order[1]))


def _changes(subject: ReportData, usual: Batch, row: Batch, columns: Sequence[int], n_columns: int) -> Iterator[Html]:
    """Write what would change the prediction of one row."""
    if len(subject.labels) < 2:
        return
    changes = smallest_changes(subject.estimator, usual, row, columns)
    some = f" of the {_MOST_CHANGED} most important columns" if n_columns > _MOST_CHANGED else ""
    if not changes:
        yield paragraph(f"No change of a single cell{some} to an observed value changes the prediction.", class_="note")
        return
    yield paragraph(f"Smallest changes of a single cell{some} that change the prediction:", class_="note")
    lines = (
        f"{change.column} from {change.before} to {change.after}: "
        f"then {subject.label_phrases[change.label]}, with {percent(change.probability)}"
        for change in changes[:_MOST_SHOWN]
    )
    yield element("ul", *(element("li", line) for line in lines), class_="changes")


def _bayes_rule(subject: ReportData, explanation: Explanation, row: int) -> Iterator[Html]:
    """Write out Bayes' rule, for a pool that of its main member; nothing if `weights` change the sum."""
    if subject.model.weights is not None:
        return
    whose = "" if subject.lens_name is None else f" for the member {subject.lens_name}"
    order = np.argsort(-explanation.log_joint[row], kind="stable")
    yield details(f"Bayes’ rule, written out{whose}", element("pre", _written_out(explanation, row, order)))


def _steps(subject: ReportData, explanation: Explanation, row: int, first: int, second: int) -> Html:
    """Return the factors of the odds of two classes: the prior, then the cells by size."""
    one, other = subject.label_phrases[first], subject.label_phrases[second]
    with np.errstate(invalid="ignore"):
        steps = np.nan_to_num(
            explanation.log_factors[row, first] - explanation.log_factors[row, second],
            nan=0.0,
            posinf=np.inf,
            neginf=-np.inf,
        )
        start = float(explanation.log_prior[first] - explanation.log_prior[second])
    present = np.array([cell is not None for cell in explanation.values[row]])
    ranked = [int(j) for j in np.argsort(-np.abs(steps), kind="stable") if present[j] or steps[j] != 0.0]
    lines = [("prior odds" if explanation.begins_at_prior else "initial odds", start)]
    lines += [(_cell_name(explanation, row, j), float(steps[j])) for j in ranked[:_MOST_STEPS]]
    rest = ranked[_MOST_STEPS:]
    if rest:
        lines.append((plural(len(rest), "other column"), float(steps[rest].sum())))
    finite = [abs(step) for _, step in lines if np.isfinite(step)]
    greatest = max(finite, default=0.0) or 1.0
    total = float(sum(step for _, step in lines))
    rows = [[name, _step(step, one, other), _odds_bar(step / greatest)] for name, step in lines]
    for name, factors in explanation.words_of(row).items():
        words = factors.strongest(first, second, _MOST_WORDS)
        at = next((k for k, line in enumerate(rows) if str(line[0]).startswith(f"{name} = ")), len(rows) - 1)
        rows[at + 1 : at + 1] = [
            [f"of it {shortened(word, _LONGEST_WORD)}", _step(step, one, other), _odds_bar(step / greatest)]
            for word, step in words.items()
        ]
    rows.append([element("strong", "posterior odds"), element("strong", _step(total, one, other)), ""])
    missing = np.flatnonzero(~present)
    grid = table(f"{one} against {other}", ["evidence", "factor of the odds", ""], rows, text=(0, 1))
    if not len(missing):
        return grid
    names = listed([explanation.feature_names[j] for j in missing], 6)
    return Html(grid + paragraph(f"Missing and integrated out: {names}.", class_="note"))


def _cell_name(explanation: Explanation, row: int, j: int) -> str:
    name = f"{explanation.feature_names[j]} = {cell_text(explanation.values[row, j])}"
    if explanation.values[row, j] is None:
        name = f"{explanation.feature_names[j]} missing"
    known = explanation.known(row, j)
    return f"{name}, given {listed(list(known), 2)}" if known else name


def _step(nats: float, one: str, other: str) -> str:
    if abs(nats) < 0.005 or nats != nats:
        return "× 1.0"
    return f"{times(abs(nats))} for {one if nats > 0 else other}"


def _odds_bar(share: float) -> Html:
    """Return a bar from the middle to the right, or to the left if the share is negative."""
    width = 50.0 * min(abs(share), 1.0)
    left, side = (50.0, None) if share >= 0 else (50.0 - width, "against")
    inner = element("i", style=f"left:{left:.1f}%;width:{width:.1f}%", class_=side)
    return element("span", inner, class_="bar odds", aria_hidden="true")


def _written_out(explanation: Explanation, row: int, order: Array) -> str:
    """Write out Bayes' rule; if there are many classes, merge the less probable ones."""
    one = explanation.row(row)
    with np.errstate(invalid="ignore"):  # the posterior of a row that no class can produce
        if len(order) <= _MOST_CLASSES:
            return one.bayes_table()
        return merge_classes(one, [int(c) for c in order[: _MOST_CLASSES - 1]]).bayes_table()
