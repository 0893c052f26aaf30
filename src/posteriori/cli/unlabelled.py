"""Rows without labels on the command line: their class shares, and how good predictions of them are expected to be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from posteriori.cli.messages import as_user_errors, warn
from posteriori.cli.models import scan_for
from posteriori.cli.options import numbers_by_class

if TYPE_CHECKING:
    from posteriori.classifiers.deciding import Decides
    from posteriori.facts.model import Facts
    from posteriori.scoring.decisions import Decision

ESTIMATE = "estimate"


def shares_in(text: str, classes: Sequence[Any]) -> dict[Any, float] | str:
    """Return the class shares of --priors, or "estimate" or "uniform".

    Raises
    ------
    UserError
        A share is malformed, or names no class.
    """
    return text if text in (ESTIMATE, "uniform") else numbers_by_class("priors", text, classes)


def with_priors(model: Decides, text: str, tables: Sequence[str]) -> Decides:
    """Return a model of the class shares of --priors; those that are estimated are said."""
    wanted = shares_in(text, model.classes_.tolist())
    with as_user_errors():
        if wanted != ESTIMATE:
            return model.with_priors(wanted)
        found = model.estimate_priors(scan_for(model.schema_, model.target_, tables))
        warn(found.sentences[0])
        return model.with_priors(found.priors)


def expected_facts(model: Decides, tables: Sequence[str], decision: Decision | None, earlier: str | None) -> Facts:
    """Return the estimated class shares of rows without labels, and the expected figures of predictions of them."""
    rows = scan_for(model.schema_, model.target_, tables)
    against = None if earlier is None else scan_for(model.schema_, model.target_, [earlier])
    with as_user_errors():
        shares = model.estimate_priors(rows, against)
        priors = "estimate" if shares.mix_changed else None
        found = model.expected_of_decision(rows, decision, priors, against)
    ends = shares.interval(0.9)
    each = zip(shares.classes.tolist(), shares.prior, shares.shares, ends.tolist(), strict=True)
    return {
        "rows": found.n,
        "class_shares": [
            {"class": label, "of_training": float(was), "estimated": float(share), "low": low, "high": high}
            for label, was, share, (low, high) in each
        ],
        "mix_changed": shares.mix_changed,
        "p_value": shares.p_value,
        "columns_changed": shares.columns_changed,
        "expected": {
            "accuracy": found.accuracy,
            "log_loss": found.log_loss,
            "auc": found.auc if len(shares.classes) == 2 else None,
            "cost": found.cost,
            "standard_error": found.standard_error,
            "confusion": found.confusion.tolist(),
        },
        "sentences": [*shares.sentences, *found.sentences],
    }


def print_expected(facts: Facts) -> None:
    """Print the class shares and the expected figures of rows without labels."""
    from posteriori.cli.tables import console, label_text, new_table, print_table
    from posteriori.support.formatting import plural

    out = console()
    out.print(f"{plural(facts['rows'], 'row')}; labels are not used\n")
    if not facts["columns_changed"]:
        table = new_table("class", "in training", "estimated", "90 % interval")
        for one in facts["class_shares"]:
            ends = f"{one['low']:.3f} to {one['high']:.3f}"
            table.add_row(label_text(one["class"]), f"{one['of_training']:.3f}", f"{one['estimated']:.3f}", ends)
        print_table(out, table)
    for sentence in facts["sentences"]:
        out.print(sentence, soft_wrap=True)
