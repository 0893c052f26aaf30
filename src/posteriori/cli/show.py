"""The command show: the parameters of a model."""

from __future__ import annotations

from posteriori.cli.models import load_model
from posteriori.cli.options import AsJson, ModelPath


def show(model: ModelPath, as_json: AsJson = False) -> None:
    """Show the parameters of a model.

    Example:

        posteriori show penguins.posteriori
    """
    estimator = load_model(model, mixtures=True)

    from posteriori.classifiers.training_record import record_of
    from posteriori.cli import pages, tables
    from posteriori.facts.model import model_facts

    found = {"command": "show", **model_facts(estimator), "alerts": record_of(estimator).alerts or []}
    page = pages.print_pool if "members" in found else pages.print_model
    (tables.print_json if as_json else page)(found)
