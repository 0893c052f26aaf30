"""Facts and terminal pages of explain: Bayes' rule for some rows, or the mean of a number as a sum."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from posteriori.cli.tables import NAME, bar, console, label_text, new_table, print_rows
from posteriori.explain import Explanation
from posteriori.explain.sums import LogOdds, merge_classes
from posteriori.regression.explanation import NumberExplanation
from posteriori.regression.held_out import COVERAGE
from posteriori.support.formatting import number, plural, probability, shortened
from posteriori.support.typing import Array

if TYPE_CHECKING:
    from posteriori.facts.model import Facts

_MOST_WORDS = 10  # of a column in a row
_SIDE = 10  # characters of the longest signed bar
_DIGITS = 4  # of a number
_SHORTEST_NAME = 6  # characters of a name in a table that has to fit the terminal


def explanation_facts(
    explanation: Explanation,
    rows: Sequence[int],
    labels: Sequence[Any] | None,
    rarity: tuple[Array, Array] | None,
    outside: Sequence[str],
) -> list[Facts]:
    """Return the facts about each explained row.

    Parameters
    ----------
    explanation : Explanation
    rows : sequence of int
        The number of each row in its table.
    labels : sequence, optional
        The true classes; None where the table does not have them.
    rarity : tuple of ndarray (n,), optional
        log p(x) and its rank among rows drawn from the model; None if the model has no log p(x).
    outside : sequence of str (n,)
        Which numbers of each row lie outside of the range of the training rows.
    """
    classes = explanation.classes.tolist()
    constant = "log_prior" if explanation.begins_at_prior else "bias"
    facts = []
    for place, row in enumerate(rows):
        odds = explanation.log_odds(place) if len(classes) > 1 else None
        best = int(np.argmax(explanation.log_joint[place]))
        factors = explanation.log_factors[place]
        facts.append(
            {
                "row": row,
                "prediction": classes[best],
                **({} if labels is None else {"true": labels[place]}),
                "posterior": dict(zip(classes, explanation.posterior[place], strict=True)),
                **({} if rarity is None else {"log_density": rarity[0][place], "strangeness": rarity[1][place]}),
                "outside": outside[place],
                "weighted": explanation.weighted,
                constant: dict(zip(classes, explanation.log_prior, strict=True)),
                "features": [
                    {
                        "feature": name,
                        **_value(explanation.values[place, j]),
                        "given": list(explanation.known(place, j)),
                        "log_factor": dict(zip(classes, factors[:, j], strict=True)),
                        "log_odds": None if odds is None else odds.factors[name],
                        **_words(explanation, place, name, odds),
                    }
                    for j, name in enumerate(explanation.feature_names)
                ],
                "log_odds": None
                if odds is None
                else {"class": odds.label, "against": odds.against, constant: odds.prior, "total": odds.total},
            }
        )
    return facts


def _value(cell: Any) -> Facts:
    """Return a cell, or the number of words of a bag."""
    return {"n_words": sum(cell.values())} if isinstance(cell, Mapping) else {"value": cell}


def _words(explanation: Explanation, place: int, name: str, odds: LogOdds | None) -> Facts:
    """Return the words of a column of counts or text that add most to the log-odds of the row."""
    factors = explanation.words_of(place).get(name)
    if factors is None or odds is None:
        return {}
    classes = explanation.classes.tolist()
    strongest = itertools.islice(odds.words[name].items(), _MOST_WORDS)
    return {
        "words": [
            {"word": word, "log_factor": dict(zip(classes, factors.factors[word], strict=True)), "log_odds": nats}
            for word, nats in strongest
        ]
    }


def print_explanation(explanation: Explanation, facts: Facts) -> None:
    """Print the prediction of one row, Bayes' rule, and the contribution of each feature to the log-odds.

    Of a model with weighted factors the log-odds come first, and each factor is relative to its greatest one.
    """
    out = console()
    _print_summary(out, facts)
    if explanation.weighted:
        if len(explanation.classes) > 1:
            _print_log_odds(out, explanation)
            out.print()
        out.print(
            "Each factor is a product of factors of the members, such as densities p(cell | class), each to the power "
            "of its weight, divided by the factor of the class for which it is greatest. "
            "The posterior is the product of a column, divided by the sum of the products.\n"
        )
        _print_bayes(out, explanation.relative())
    else:
        _print_bayes(out, explanation)
        out.print()
        if len(explanation.classes) > 1:
            _print_log_odds(out, explanation)
    out.print()


def _print_summary(out: Console, facts: Facts) -> None:
    p = facts["posterior"][facts["prediction"]]
    true = "not given" if facts.get("true") is None else label_text(facts["true"])
    out.print(
        f"row {facts['row']}: {label_text(facts['prediction'])}, p = {probability(p)}"
        + (f"; true class: {true}" if "true" in facts else "")
    )
    if "strangeness" in facts:
        out.print(f"strangeness {facts['strangeness']:.3f}, log p(x) = {facts['log_density']:.4f}")
    _print_outside(out, facts)


def _print_outside(out: Console, facts: Facts) -> None:
    """Print which numbers of a row lie outside of the range of the training rows, and an empty line."""
    if facts["outside"]:
        out.print(f"outside of the training range: {label_text(facts['outside'])}", soft_wrap=True)
    out.print()


def _print_bayes(out: Console, explanation: Explanation) -> None:
    """Print Bayes' rule for one row.

    If the table is too wide for the terminal, the classes with the smallest posteriors are merged, and then names are
    cut.
    """
    ranked = np.argsort(-explanation.log_joint[0], kind="stable")
    shown = explanation
    text = shown.bayes_table()
    kept = len(ranked)
    while kept > 2 and _width(text) > out.width:
        kept -= 1
        shown = merge_classes(explanation, list(ranked[:kept]))
        text = shown.bayes_table()
    length = NAME
    while length > _SHORTEST_NAME and _width(text) > out.width:
        length -= 2
        text = _shortened(shown, length).bayes_table()
    out.print(text, soft_wrap=True)
    if kept < len(ranked):
        out.print(
            f"\nThe {len(ranked) - kept} classes with the smallest posteriors are merged into one. Its likelihoods are "
            "conditional on the features above them, so that the column still multiplies to its joint."
        )


def _print_log_odds(out: Console, explanation: Explanation) -> None:
    """Print the contributions of the prior and of each feature to the log-odds of the two best classes."""
    log_odds = explanation.log_odds()
    entries: list[tuple[str, str, float, Mapping[str, float]]] = [(explanation.constant, "", log_odds.prior, {})]
    for value, (name, nats) in zip(explanation.values[0], log_odds.factors.items(), strict=True):
        entries.append((label_text(name), _cell(value), nats, log_odds.words.get(name, {})))
    amounts = [one for *_, nats, words in entries for one in (nats, *words.values())]
    greatest = max((abs(nats) for nats in amounts if math.isfinite(nats)), default=0.0)
    one, other = label_text(log_odds.label), label_text(log_odds.against)
    table = new_table("adds to the log-odds", "value", "nats", _sides(other, one), left=2)
    table.columns[3].justify = "left"
    for name, value, nats, words in sorted(entries, key=lambda entry: -abs(entry[2])):
        table.add_row(name, value, f"{nats:+.4f}", _signed_bar(nats, greatest))
        for word, part in itertools.islice(words.items(), _MOST_WORDS):
            table.add_row("", label_text(word), f"{part:+.4f}", _signed_bar(part, greatest))
    table.add_section()
    table.add_row("log-odds", "", f"{log_odds.total:+.4f}", "")
    out.print(f"{one} against {other}: log p({one} | x) − log p({other} | x)")
    out.print()
    print_rows(out, table)


def _sides(left: str, right: str) -> str:
    """Return the heading of signed bars: which class each side speaks for."""
    return f"{shortened(left, _SIDE - 2):>{_SIDE - 2}} ← → {shortened(right, _SIDE - 2)}"


def _signed_bar(value: float, greatest: float) -> str:
    """Return a bar from the middle to the right for a positive value, and to the left for a negative one."""
    drawn = bar(abs(value), greatest, width=_SIDE) if math.isfinite(value) else ""
    return f"{drawn if value < 0 else '':>{_SIDE}}│{drawn if value > 0 else ''}"


def _cell(value: Any) -> str:
    if value is None:
        return "missing"
    return number(value, 6) if isinstance(value, float) else label_text(value)


def _width(text: str) -> int:
    """Return the width of the table without the line on the evidence, which may wrap."""
    return max(len(line) for line in text.splitlines() if not line.startswith("evidence"))


def _shortened(explanation: Explanation, length: int) -> Explanation:
    def cut(cell: Any) -> Any:
        return shortened(cell, length) if isinstance(cell, str) else cell

    values = np.empty_like(explanation.values)
    values[0] = [cut(cell) for cell in explanation.values[0]]
    names = [cut(name) for name in explanation.feature_names]
    classes = np.array([cut(str(label)) for label in explanation.classes], dtype=object)
    return dataclasses.replace(explanation, classes=classes, feature_names=tuple(names), values=values)


def number_explanation_facts(
    explanation: NumberExplanation,
    rows: Sequence[int],
    truth: Sequence[Any] | None,
    interval: Array,
    outside: Sequence[str],
) -> list[Facts]:
    """Return the facts about each explained row.

    Parameters
    ----------
    explanation : NumberExplanation
    rows : sequence of int
        The number of each row in its table.
    truth : sequence, optional
        The true numbers; None where the table does not have them.
    interval : ndarray (n, 2)
        The central intervals of the rows.
    outside : sequence of str (n,)
        Which numbers of each row lie outside of the range of the training rows.
    """
    return [
        {
            "row": row,
            "target": explanation.target,
            "prediction": explanation.mean[place],
            **({} if truth is None else {"true": truth[place]}),
            "outside": outside[place],
            "coverage": COVERAGE,
            "interval": interval[place],
            "width": explanation.width[place],
            "base": explanation.base,
            "features": [
                {
                    "feature": explanation.feature_names[j],
                    "value": explanation.values[place, j],
                    "part": explanation.parts[place, j],
                    "width_change": explanation.width_changes[place, j],
                }
                for j in explanation.ranked(place)
            ],
            "not_known": [
                name
                for name, value in zip(explanation.feature_names, explanation.values[place], strict=True)
                if value is None
            ],
        }
        for place, row in enumerate(rows)
    ]


def print_number_explanation(facts: Facts) -> None:
    """Print the prediction of one row, what each column adds to the mean, and by how much it changes the interval."""
    out, target = console(), label_text(facts["target"])
    low, high = (_written(end) for end in facts["interval"])
    true = "not given" if facts.get("true") is None else number(facts["true"], 6, separator=",")
    out.print(
        f"row {facts['row']}: {target} = {_written(facts['prediction'])}, {COVERAGE:.0%} interval {low} to {high}"
        + (f"; true {target}: {true}" if "true" in facts else ""),
        soft_wrap=True,
    )
    _print_outside(out, facts)
    greatest = max((abs(one["part"]) for one in facts["features"]), default=0.0)
    table = new_table("adds to the mean", "value", target, "     less ← → more", "interval", left=2)
    table.columns[3].justify = "left"
    table.add_row("with nothing known", "", _written(facts["base"]), "", "")
    for one in facts["features"]:
        table.add_row(
            label_text(one["feature"]),
            _cell(one["value"]),
            _signed(one["part"]),
            _signed_bar(one["part"], greatest),
            _signed(one["width_change"]),
        )
    if facts["not_known"]:
        table.add_row(plural(len(facts["not_known"]), "column") + " not known", "", "0", "", "")
    table.add_section()
    table.add_row("mean", "", _written(facts["prediction"]), "", _written(facts["width"]))
    print_rows(out, table)
    out.print(
        f"\nThe column interval has the width of the {COVERAGE:.0%} interval, and by how much each cell changes it: "
        "less than 0 if the prediction is more certain with the cell. These changes do not add up.\n"
    )


def _written(value: float) -> str:
    return number(float(value), _DIGITS, separator=",")


def _signed(value: float) -> str:
    return f"+{_written(value)}" if value > 0 else _written(value)
