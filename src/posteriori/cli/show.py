"""The command show: the parameters of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from posteriori.cli.models import load
from posteriori.cli.options import AsJson, ModelPath
from posteriori.registry import Subject

if TYPE_CHECKING:
    from posteriori.classifiers.estimator import Estimator
    from posteriori.facts.model import Facts


def show(model: ModelPath, as_json: AsJson = False) -> None:
    """Show the parameters of a model.

    Example:

        posteriori show penguins.posteriori
    """
    loaded = load(model, Subject.CLASS, Subject.COMPONENT, Subject.NUMBER, Subject.COLUMNS)

    from posteriori.cli import model_page, tables
    from posteriori.facts.joint import joint_facts
    from posteriori.facts.numbers import regressor_facts

    facts_of, print_page = {
        Subject.COLUMNS: (joint_facts, model_page.print_joint),
        Subject.NUMBER: (regressor_facts, model_page.print_regressor),
    }.get(loaded.subject, (_facts_of_classes, model_page.print_classes))
    facts = {"command": "show", **facts_of(loaded)}
    (tables.print_json if as_json else print_page)(facts)


def _facts_of_classes(estimator: Estimator) -> Facts:
    from posteriori.classifiers.training_record import record_of
    from posteriori.facts.model import model_facts

    return {**model_facts(estimator), "alerts": record_of(estimator).alerts or []}
