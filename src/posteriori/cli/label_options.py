"""Options of fit on labels: missing labels, noisy labels, and classes that are mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from posteriori.cli.messages import UserError
from posteriori.registry import names_with
from posteriori.suggestions import closest

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers import GenerativeEstimator


class Unlabelled(StrEnum):
    """Treatment of rows whose label is missing."""

    ignore = "ignore"
    learn = "learn"


def apply_label_options(
    estimator: GenerativeEstimator,
    model: str,
    labels: pl.Series,
    *,
    unlabelled: Unlabelled | None,
    weight: str | None,
    components_per_class: str | None,
    noise: str | None,
    seed: int,
) -> tuple[GenerativeEstimator, Unlabelled]:
    """Set the options about labels on an estimator; return it with the treatment of rows without label.

    Raises
    ------
    UserError
        The model does not support an option, or an option is malformed.
    """
    known = estimator.get_params()
    asked = {
        "--unlabelled learn": ("labels", "unlabelled", unlabelled is Unlabelled.learn),
        "--unlabelled-weight": ("labels", "unlabelled", weight is not None),
        "--components-per-class": ("em", "label_noise", components_per_class is not None),
        "--label-noise": ("em", "label_noise", noise is not None),
    }
    for option, (group, capability, wanted) in asked.items():
        if wanted and group not in known:
            raise UserError(
                f"{option} needs EM, which --model {model} does not use for it; use {names_with(capability)}"
            )
    if "labels" not in known:
        return estimator, Unlabelled.ignore
    if model == "pool" and is_held_out(weight):
        raise UserError(
            f"--model pool cannot choose --unlabelled-weight; give a number, or use {names_with('label_noise')}"
        )
    asks = unlabelled is None and weight is None
    use = Unlabelled.ignore if model == "pool" and asks else unlabelled or Unlabelled.learn
    if weight is not None and use is Unlabelled.ignore:
        raise UserError("--unlabelled-weight weights rows that --unlabelled ignore leaves out; remove one of the two")
    parameters: dict[str, Any] = {"random_state": seed}
    if use is Unlabelled.learn:
        parameters["labels__unlabelled"] = "learn"
    if weight is not None:
        parameters["labels__unlabelled_weight"] = _weight(weight)
    if components_per_class is not None:
        classes = labels.drop_nulls().unique().sort().to_list()
        parameters["em__components_per_class"] = _components(components_per_class, classes)
    if noise is not None:
        parameters["labels__label_noise"] = _noise(noise)
    return estimator.set_params(**parameters), use


def is_held_out(weight: str | None) -> bool:
    """Whether the weight of rows without label is to be chosen on held-out rows."""
    return weight in ("held-out", "held_out")


def _weight(text: str) -> float | str:
    if is_held_out(text):
        return "held_out"
    return _share(text, f'--unlabelled-weight is {text!r}; give a number from 0 to 1, or "held-out"')


def _noise(text: str) -> float | str:
    message = f'--label-noise is {text!r}; give the share of wrong labels, at least 0 and below 1, or "learn"'
    if text == "learn":
        return text
    share = _share(text, message)
    if share == 1:
        raise UserError(message)
    return share


def _share(text: str, message: str) -> float:
    try:
        share = float(text)
    except ValueError:
        raise UserError(message) from None
    if not 0 <= share <= 1:
        raise UserError(message)
    return share


def _components(text: str, classes: Sequence[Any]) -> int | dict[Any, int]:
    """Parse the number of components of all classes, ``2``, or of some classes, ``a=2,b=3``."""
    if "=" not in text:
        return _many(text, text)
    spelled = {spelling: label for label in classes for spelling in spellings(label)}
    found = {}
    for part in text.split(","):
        name, _, many = part.rpartition("=")
        if name.strip() not in spelled:
            hint = closest(name.strip(), spelled, "classes")
            raise UserError(f"--components-per-class names {name.strip()!r}, which is not a class; {hint}")
        found[spelled[name.strip()]] = _many(many, text)
    return found


def spellings(label: Any) -> list[str]:
    """Return how a class may be written in an option; a whole number needs no decimal point."""
    if isinstance(label, bool):
        return [str(label).lower()]
    return [f"{label:.0f}"] if isinstance(label, float) else [str(label)]


def _many(part: str, text: str) -> int:
    if not part.strip().isdecimal() or int(part) < 1:
        raise UserError(
            f"--components-per-class is {text!r}; write 2, or CLASS=2,OTHER=3, with whole numbers of at least 1"
        )
    return int(part)


def unlabelled_facts(estimator: GenerativeEstimator, rows: int, use: Unlabelled) -> dict[str, Any]:
    """Return the number of rows without a label, their treatment and weight, and whether held-out rows chose it."""
    from posteriori.classifiers.parameter_groups import labels_of

    learned = use is Unlabelled.learn and rows > 0
    return {
        "rows": rows,
        "use": use.value,
        "weight": estimator.unlabelled_weight_ if learned else None,
        "weight_is_held_out": learned and labels_of(estimator).unlabelled_weight == "held_out",
    }


def unlabelled_line(found: dict[str, Any]) -> str:
    """Return a sentence on the treatment of rows without a label, and on the alternatives."""
    plural = "s" if found["rows"] > 1 else ""
    start = f"{found['rows']:,} row{plural} without a label"
    if found["use"] == Unlabelled.ignore:
        return f"{start}: left out"
    chosen = found["weight_is_held_out"]
    how = ", chosen on held-out rows" if chosen else ""
    other = "" if chosen else "; --unlabelled-weight held-out chooses the weight"
    return (
        f"{start}: learned from by EM with weight {found['weight']:g}{how}. If the assumptions of the model do not "
        f"hold, they can do harm: --unlabelled ignore leaves them out{other}"
    )
