"""The command show: the parameters of a model."""

from __future__ import annotations

from posteriori.cli.models import joint_model_in, load_of_any_target
from posteriori.cli.options import AsJson, ModelPath


def show(model: ModelPath, as_json: AsJson = False) -> None:
    """Show the parameters of a model.

    Example:

        posteriori show penguins.posteriori
    """
    joint = joint_model_in(model)
    if joint is not None:
        from posteriori.cli import joint_pages, tables
        from posteriori.facts.joint import joint_facts

        of_joint = {"command": "show", **joint_facts(joint)}
        (tables.print_json if as_json else joint_pages.print_joint)(of_joint)
        return
    loaded = load_of_any_target(model)

    from posteriori.classifiers.generative_regressor import Regressor

    if isinstance(loaded, Regressor):
        from posteriori.cli import number_pages, tables
        from posteriori.facts.numbers import regressor_facts

        of_regressor = {"command": "show", **regressor_facts(loaded)}
        (tables.print_json if as_json else number_pages.print_regressor)(of_regressor)
        return
    estimator = loaded

    from posteriori.classifiers.training_record import record_of
    from posteriori.cli import pages, tables
    from posteriori.facts.model import model_facts

    found = {"command": "show", **model_facts(estimator), "alerts": record_of(estimator).alerts or []}
    page = pages.print_pool if "members" in found else pages.print_model
    (tables.print_json if as_json else page)(found)
