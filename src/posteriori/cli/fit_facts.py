"""Facts that fit prints: columns with hints and alerts, cross-validated scores and feature importance."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import polars as pl

from posteriori.facts.columns import column_facts, facts_of_rows, facts_of_scan
from posteriori.facts.model import (
    Facts,
    candidate_facts,
    class_of_interest,
    information,
    labels_of,
    parameter_counts,
    score_facts,
    verdict_on_pool,
)
from posteriori.model_selection import in_words
from posteriori.reading.file_frames import SAMPLED_ROWS
from posteriori.reading.marks import is_mark
from posteriori.reading.spellings import spelled_alike
from posteriori.reading.target_cuts import numbers_as_classes
from posteriori.reading.texts import SAMPLED, looks_like_text
from posteriori.reporting import alerts
from posteriori.reporting.data import ReportData
from posteriori.tables import Column, Schema, quote
from posteriori.tables.polars import exactly

if TYPE_CHECKING:
    from posteriori.classifiers.estimator import Estimator
    from posteriori.cli.hold_out import Judged
    from posteriori.model_selection import HeldOut
    from posteriori.reading import Scan
    from posteriori.statistics.description import ScannedTable


_FEWEST_ROWS = 10  # with fewer rows, a row counter or as many categories as rows may be chance
_IDENTIFIER_SHARE = 0.8  # categories per present cell
_SAMPLED = 5000  # rows in which alerts are looked for, as in a report
_SAID_ELSEWHERE = ("constant", "ignored")  # hints of fit, the columns of show
_CODES = range(3, 11)  # distinct whole numbers that may be codes
_CODE_NAMES = frozenset(["category", "class", "code", "codes", "group", "kind", "language", "region", "type", "zone"])
_ID_NAMES = _CODE_NAMES | {"id", "ids", "key", "plz", "postal", "postcode", "sku", "uid", "zip", "zipcode"}


def hints(
    scan: Scan,
    description: ScannedTable,
    schema: Schema,
    stated: Collection[str] = frozenset(),
    reads_text: bool = True,
) -> Iterable[str]:
    """Yield a sentence with a remedy for each suspicious column; `stated` are columns whose kind the user has chosen.

    The suspects are columns that count the rows, have one value or two whole numbers,
    have almost as many categories as cells, have a mark of a missing cell as a category, or hold whole numbers that
    look like codes.
    """
    target = schema.target
    for alike in () if target is None else spelled_alike(description.labels):
        yield (
            f"the target {quote([str(target)])} has the classes {', '.join(map(repr, alike))}, which differ only in "
            "case or blanks; if they mean the same, spell them in one way"
        )
    constant, binary = [], []
    for column in schema.columns:
        if column.part is not None:
            if column.is_ignored:
                yield f"{quote([column.name])} is ignored: {column.reason}"
            continue
        if column.is_ignored:
            kind = "text" if _is_text(scan, column) else "keep"
            if kind == "text" and not reads_text:
                yield f"{quote([column.name])} is ignored: {column.reason}; such a model reads no text"
                continue
            option = f"--column {shlex.quote(f'{column.name}={kind}')}"
            yield f"{quote([column.name])} is ignored: {column.reason}; to use it, add {option}"
            continue
        scanned = description.columns[column.name]
        present = scanned.cells.present
        if present >= _FEWEST_ROWS and scanned.counts_rows:
            yield f"{quote([column.name])} counts the rows; leave it out: --ignore {shlex.quote(column.name)}"
        if scanned.n_values == 1:
            constant.append(column.name)
        if scanned.n_values == 2 and _are_whole(column, description) and column.name not in stated:
            binary.append(column.name)
        holds_words = column.kind == "categorical" and column.holds_strings and column.name not in scan.remarks
        if holds_words and present >= _FEWEST_ROWS and len(column.categories) > _IDENTIFIER_SHARE * present:
            yield (
                f"{quote([column.name])} has {len(column.categories)} categories in {present} cells: an identifier "
                f"or free text? leave it out: --ignore {shlex.quote(column.name)}"
            )
    yield from _hints_on_marks(schema)
    if binary:
        yield (
            f"{quote(binary)} {_have(binary)} only two values; if they are codes rather than quantities, "
            f"add --categorical {shlex.quote(','.join(binary))}"
        )
    yield from _hints_on_codes(scan, description, schema, stated)
    if constant:
        yield f"{quote(constant)} {_have(constant)} only one value and cannot inform on the target"


def _are_whole(column: Column, description: ScannedTable) -> bool:
    is_number = column.kind == "continuous" and column.part is None
    return is_number and description.columns[column.name].dtype.is_integer()


def _hints_on_codes(scan: Scan, description: ScannedTable, schema: Schema, stated: Collection[str]) -> Iterable[str]:
    codes, named, identifying = _codes(scan, description, schema, stated)
    if codes:
        yield (
            f"{quote(codes)} {_have(codes)} few whole numbers; if they are codes rather than quantities, "
            f"add --categorical {shlex.quote(','.join(codes))}"
        )
    if named:
        quantities = "a quantity" if len(named) == 1 else "quantities"
        yield (
            f"{quote(named)} {_named_like_codes(named)} but read as {quantities}; if that is wrong, add "
            f"--categorical {shlex.quote(','.join(named))}"
        )
    if identifying:
        yield (
            f"{quote(identifying)} {_named_like_codes(identifying)}, and nearly every row has its own; to leave out an "
            f"identifier, add --ignore {shlex.quote(','.join(identifying))}"
        )


def _named_like_codes(names: list[str]) -> str:
    return "is named like a code" if len(names) == 1 else "are named like codes"


def _codes(
    scan: Scan, description: ScannedTable, schema: Schema, stated: Collection[str]
) -> tuple[list[str], list[str], list[str]]:
    """Return columns of whole numbers, in the first rows, that look like codes.

    They have 3 to 10 values and look like codes by their name or steps; or more, and are named like codes; or are, and
    nearly every row has a value of its own. Most steps between codes are other than 1 and not all equal. Counts begin
    with steps of 1, so that other numbers from 1 on without a gap get no hint.
    """
    names = [column.name for column in schema.columns if _are_whole(column, description) and column.name not in stated]
    found: tuple[list[str], list[str], list[str]] = ([], [], [])
    if not names:
        return found
    head = scan.frame.head(SAMPLED_ROWS)
    values = head.select(exactly(name).drop_nulls().unique().sort().head(_CODES.stop).implode() for name in names)
    for cells in values.collect(engine="streaming").iter_columns():
        numbers = cells[0].to_list()
        words = {word.lower() for word in re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", cells.name)}  # "EthnicClass", too
        if len(numbers) in _CODES:
            steps = [high - low for low, high in itertools.pairwise(numbers)]
            has_gaps = len(set(steps)) > 1 and 2 * sum(step > 1 for step in steps) > len(steps)
            if has_gaps or not words.isdisjoint(_CODE_NAMES):
                found[0].append(cells.name)
        elif len(numbers) == _CODES.stop and not words.isdisjoint(_ID_NAMES):
            present = head.select(exactly(cells.name).drop_nulls()).collect(engine="streaming").to_series()
            identifies = present.n_unique() > _IDENTIFIER_SHARE * len(present)
            if not (identifies and description.columns[cells.name].counts_rows):  # which another hint says
                found[2 if identifies else 1].append(cells.name)
    return found


def _have(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _hints_on_marks(schema: Schema) -> Iterable[str]:
    marked = {column.name: _marks_among_categories(column) for column in schema.columns}
    if any(marked.values()):
        marks = sorted({mark for found in marked.values() for mark in found})
        names = [name for name, found in marked.items() if found]
        yield (
            f"{quote(names)} {_have(names)} the {'categories' if len(marks) > 1 else 'category'} "
            f"{', '.join(map(repr, marks))}; if that means missing, add --missing-values {shlex.quote(','.join(marks))}"
        )


def _marks_among_categories(column: Column) -> list[str]:
    """Return the categories that usually mark a missing cell and are no words, such as ? and n/a; not + and - alone."""
    marks = [cell for cell in column.categories if isinstance(cell, str) and is_mark(cell) and not cell.isalpha()]
    return marks if len(marks) < len(column.categories) else []


def _is_text(scan: Scan, column: Column) -> bool:
    """Return whether an ignored column is text, which only some models read."""
    if scan.types[column.name] != pl.String:
        return False
    head = scan.frame.select(exactly(column.name).drop_nulls().head(SAMPLED)).collect(engine="streaming")
    return looks_like_text(head.to_series().to_list())


def facts_of_columns(
    estimator: Estimator, scan: Scan, description: ScannedTable, stated: Collection[str] = (), reads_text: bool = True
) -> Facts:
    """Return the facts about the columns, and the hints on how they are read."""
    return {
        "columns": column_facts(facts_of_scan(estimator, scan, description), description.n_rows),
        "hints": list(hints(scan, description, estimator.schema_, stated, reads_text)),
    }


def fit_facts(scan: Scan, description: ScannedTable, scored: HeldOut, judged: Judged) -> Facts:
    """Return the facts about a fit: columns, hints, scores, number of parameters and feature importance."""
    estimator, held = scored.estimator, judged.held_out
    schema, value = estimator.schema_, estimator.fitted_
    return {
        "rows": description.n_rows,
        "target": schema.target,
        "classes": [
            {"class": label, "rows": description.labels.get(category, 0)}
            for label, category in zip(labels_of(estimator), estimator.target_.categories, strict=True)
        ],
        **facts_of_columns(estimator, scan, description, value.recipe.parameters.get("distributions") or ()),
        "cross_validation": {
            "folds": scored.folds,
            **score_facts(scored),
        },
        "hold_out": None if held is None else {**held.facts(judged.numbered), **score_facts(judged.predictions)},
        **parameter_counts(value),
        **information(estimator),
        "candidates": candidate_facts(value),
        "pool_verdict": verdict_on_pool(value),
        "left_out": dict(value.skipped),
        "language_note": value.language_note or "",
        "positive": class_of_interest(estimator, judged.predictions),
        "summary": in_words.sentences(
            judged.predictions.figures, in_words.class_phrases(labels_of(estimator), schema.target)
        ),
        "threshold_to_find_more": in_words.threshold_to_find_more(judged.predictions.figures),
        "first_ranked": _first_ranked(judged),
        "rows_to_look_at": [{"row": row, "probability": p} for row, p in judged.doubtful],
    }


def _first_ranked(judged: Judged) -> Facts | None:
    """Return the yield of the rows ranked first by a class that is hardly ever predicted."""
    found = in_words.first_ranked(judged.predictions.figures, *judged.predictions.judged)
    return None if found is None else dict(zip(("rows", "found", "threshold"), found, strict=True))


def find_alerts(estimator: Estimator, rows: Scan, target: str, description: ScannedTable) -> list[Facts]:
    """Return the alerts of a report on the columns of a table, from evenly spaced rows.

    Categories that are rare may not be among these rows, so that constant columns are those of the whole table.
    """
    every = -(-description.n_rows // _SAMPLED)
    sample = rows.frame.gather_every(every).collect(engine="streaming")
    with numbers_as_classes():
        subject = ReportData.of(estimator, sample, target)
    class_counts = [description.labels.get(label, 0) for label in estimator.target_.categories]
    found = alerts.find_alerts(subject, facts_of_rows(estimator, sample), class_counts)
    as_facts = [
        {"columns": list(one.columns), "kind": one.kind, "text": one.text}
        for one in found
        if one.kind not in _SAID_ELSEWHERE
    ]
    leaks = [one for one in as_facts if one["kind"] in alerts.LEAKS]
    leaking = {name for one in leaks for name in one["columns"]}
    constant = [
        {"columns": [name], "kind": "constant", "text": "All observed cells hold the same value."}
        for name, column in description.columns.items()
        if column.n_values == 1 and name not in leaking
    ]
    return [*leaks, *constant, *as_facts[len(leaks) :]]
