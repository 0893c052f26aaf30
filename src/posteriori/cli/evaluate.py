"""The command evaluate: scores of a model on a labelled table."""

from __future__ import annotations

import math
import reprlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.messages import UserError, as_user_errors, warn
from posteriori.cli.models import align, load, read_for, with_cut_target
from posteriori.cli.options import AsJson, ColumnOfTruth, ModelPath, Positive, TablePath
from posteriori.cli.predict import costs_in, thresholds_in
from posteriori.cli.records import CLASSES, NUMBERS, For, refuse_unfit
from posteriori.cli.targets import check_column, labelled_rows, rows_with_number
from posteriori.registry import Subject

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers.estimator import Estimator
    from posteriori.facts.model import Facts
    from posteriori.scoring.decisions import Decision


_LABELLED = For("labelled rows", "is given without labels")


@dataclass(frozen=True)
class AskedDecision:
    """The options of evaluate on decisions."""

    threshold: Annotated[
        list[str] | None,
        typer.Option(metavar="CLASS=P", help="Judge decisions: CLASS where its probability is P or more."),
        CLASSES,
    ] = None
    costs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Judge decisions by costs, as in predict: .json or table."),
        CLASSES,
    ] = None
    capacity: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Judge decisions: the class of --positive in the N (or N%) rows where it is most probable.",
            show_default=False,
        ),
        CLASSES,
        _LABELLED,
    ] = None

    def rule(self, labels: Sequence[Any]) -> Decision | None:
        """Return the rule of thresholds or costs."""
        return thresholds_in(self.threshold, labels) if self.costs is None else costs_in(self.costs, labels)

    def check(self) -> None:
        """Raise UserError if options exclude each other, or the capacity is none."""
        if self.threshold and self.capacity is not None:
            raise UserError("--threshold and --capacity are two rules for one decision; remove one of them")
        if self.capacity is not None:
            self.rows(1)

    def check_class(self, positive: Any, labels: Sequence[Any]) -> None:
        """Raise UserError if the rows of --capacity could be ranked by several classes."""
        if self.capacity is not None and positive is None and len(labels) != 2:
            raise UserError("--capacity ranks rows by one class; name it with --positive LABEL")

    def rows(self, n: int) -> int:
        """Return the number of rows, of n, that --capacity N or N% allows."""
        text = (self.capacity or "").strip()
        try:
            amount = float(text.removesuffix("%"))
        except ValueError:
            amount = -1.0
        whole = text.endswith("%") or amount == int(amount if math.isfinite(amount) else 0)
        if not 0 < amount < math.inf or not whole or (text.endswith("%") and amount > 100):
            raise UserError(
                f"--capacity is {self.capacity!r}; give a number of rows such as 200, or a share such as 5%"
            )
        return min(n, round(n * amount / 100) if text.endswith("%") else int(amount))


def evaluate(
    model: ModelPath,
    table: TablePath,
    target: ColumnOfTruth = None,
    positive: Positive = None,
    *,
    asked: AskedDecision,
    expected: Annotated[
        bool, typer.Option("--expected", help="Of rows without labels: their class shares, and the scores to expect.")
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE", help="With --expected: earlier rows, to say whether columns changed.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score the predictions for a labelled table, or say what to expect of one without labels.

    The scores are accuracy, log-loss, Brier score, AUC, precision, recall, F1 and calibration; of a number CRPS, log
    score, RMSE, MAE, R² and the coverage of its intervals. Rows that the model was trained on are scored by their
    out-of-fold predictions, which fit keeps in the model file of a classifier. Decisions are judged beside the most
    probable class.
    Details: docs/command_line.md.

    Example:

        posteriori evaluate penguins.posteriori penguins.csv
    """
    from posteriori.cli import tables

    asked.check()
    if against is not None and not expected:
        raise UserError("--against is for rows without labels; add --expected, or leave it out")
    estimator = load(model, Subject.CLASS, Subject.NUMBER)
    if expected:
        _expect(estimator, table, asked, against, as_json)
        return
    frame = read_for(estimator, table, target)
    target = target or estimator.schema_.target
    if target is None:
        raise UserError("the model does not know the name of its target; name the column with --target")
    drift = shlex.join(["posteriori", "report", str(model), str(table), "--against"])
    unlabelled = f"if its rows have no labels, add --expected, or {drift} EARLIER_TABLE compares them with earlier ones"
    check_column(target, frame.schema, table.name, unlabelled)

    from posteriori.cli import evaluation

    kind, judge, print_page = {
        Subject.CLASS: (CLASSES, _judged_classes, evaluation.print_evaluation),
        Subject.NUMBER: (NUMBERS, _judged_numbers, evaluation.print_number_evaluation),
    }[estimator.subject]
    refuse_unfit([asked], {kind, _LABELLED})
    facts = {"command": "evaluate", "table": str(table), **judge(estimator, frame, target, table, positive, asked)}
    (tables.print_json if as_json else print_page)(facts)


def _judged_classes(
    estimator: Estimator,
    read: pl.DataFrame,
    target: str,
    table: Path,
    positive: str | None,
    asked: AskedDecision,
) -> Facts:
    """Return the scores of predictions of labelled rows."""
    read = with_cut_target(read, estimator, target)
    frame = labelled_rows(read, target, table)

    from posteriori.classifiers.kept_predictions import judge_rows
    from posteriori.classifiers.training_record import chosen_class, share_of_seen_rows
    from posteriori.cli import evaluation
    from posteriori.facts.model import labels_of
    from posteriori.reading import read_labels, read_table
    from posteriori.tables.polars import exactly

    with as_user_errors():
        chosen = chosen_class(estimator, positive)
        labels = read_labels(target, read_table(frame))
        _refuse_unseen(estimator, target, labels.infer().categories)
    asked.check_class(chosen, labels_of(estimator))
    features = align(frame.select(exactly(*(name for name in frame.columns if name != target))), estimator.schema_)
    outside = _outside(estimator, features)
    with as_user_errors():
        y_true = labels.components(estimator.target_, slice(0, frame.height))
        found = judge_rows(estimator, features, y_true)
        seen = share_of_seen_rows(estimator, features)
    evaluation.say_training_rows(found)
    held_out = replace(found.held_out, positive=chosen)
    return {
        "target": target,
        "rows_without_label": read.height - frame.height,
        "share_of_training_rows": None if seen is None else max(seen, found.n_kept / frame.height),
        "out_of_fold_rows": found.n_kept,
        "outside_of_training_range": outside,
        **evaluation.evaluation_facts(estimator, held_out),
        **evaluation.decision_facts(asked, held_out, labels_of(estimator)),
    }


def _expect(model: Any, table: Path, asked: AskedDecision, against: Path | None, as_json: bool) -> None:
    """Print what is expected of rows without labels."""
    from posteriori.cli import tables
    from posteriori.cli.unlabelled import expected_facts, print_expected
    from posteriori.facts.model import labels_of

    if not hasattr(model, "expected_of_decision"):
        raise UserError("--expected is of probabilities of classes, and the model predicts a number; leave it out")
    refuse_unfit([asked], {CLASSES})
    decision = asked.rule(labels_of(model))
    earlier = None if against is None else str(against)
    facts = {"command": "evaluate", "table": str(table), **expected_facts(model, [str(table)], decision, earlier)}
    (tables.print_json if as_json else print_expected)(facts)


def _refuse_unseen(estimator: Estimator, target: str, labels: Sequence[Any]) -> None:
    """Raise UserError if rows have a label that is no class of the model."""
    from posteriori.facts.model import labels_of

    unseen = [label for label in labels if label not in estimator.target_.lookup]
    if unseen:
        known = ", ".join(map(reprlib.repr, labels_of(estimator)[:8]))
        label = reprlib.repr(unseen[0])
        raise UserError(f"the target {target!r} holds {label}, which is not a class of the model ({known})")


def _outside(model: Any, features: pl.DataFrame) -> dict[str, int] | None:
    """Return how many cells of each column are outside of the range in training, and warn of them; None if unknown."""
    from posteriori.scoring.out_of_range import OutOfRange
    from posteriori.statistics.sums import ranges_of

    ranges = ranges_of([part.ranges for part in model.fitted_.parts.values()])
    if ranges is None:
        return None
    with as_user_errors():
        outside = model._source(features).reduce(partial(OutOfRange.of, ranges=ranges))
    if outside is None:
        return None
    if sentence := outside.sentence(model.schema_, ranges):
        warn(sentence)
    return {name: int(n) for name, n in zip(model.schema_.names, outside.count, strict=True) if n}


def _judged_numbers(
    model: Any, read: pl.DataFrame, target: str, table: Path, positive: str | None, asked: AskedDecision
) -> Facts:
    """Return the scores of predicted numbers."""
    del table, asked
    from posteriori.classifiers.training_record import share_of_seen_rows
    from posteriori.cli import evaluation
    from posteriori.facts.numbers import judged_numbers
    from posteriori.tables.polars import exactly

    if positive is not None:
        raise UserError(f"--positive is for classes, and the model predicts {target!r} as a number; leave it out")
    frame = rows_with_number(read, target)
    features = align(frame.select(exactly(*(name for name in frame.columns if name != target))), model.schema_)
    with as_user_errors():
        density = model.predict_density(features)
        seen = share_of_seen_rows(model, features)
        found = judged_numbers(density, frame[target].to_numpy().astype(float), target)
    evaluation.warn_of_seen_rows(seen)
    return {"rows_without_label": read.height - frame.height, "share_of_training_rows": seen, **found}
