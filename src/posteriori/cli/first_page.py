"""The page that fit prints without --details: a few sentences, and where the rest is."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

from posteriori.cli.options import spellings, unlabelled_line
from posteriori.cli.tables import console, group_text, label_text, print_sentences
from posteriori.model_selection import in_words
from posteriori.registry import in_seen_words
from posteriori.reporting.alerts import LEAKS
from posteriori.support.formatting import listed, percent, plural

if TYPE_CHECKING:
    from posteriori.facts.model import Facts

_MOST_NOTES = 4  # hints and alerts
_MOST_LETTERS = 200  # of a note
_MOST_NAMED = 3  # columns
_DRIFT = "changes along the rows"


def what_ranking(facts: Facts) -> str:
    """Return the yield of a ranking of a class of interest that is hardly ever predicted; empty where it is."""
    found = facts["first_ranked"]
    if found is None:
        return ""
    label, predict = spellings(facts["positive"])[0], f"posteriori predict {shlex.quote(facts['output'])} …"
    name = in_words.class_phrases([facts["positive"]], facts["target"])[0]
    threshold = shlex.quote(f"{label}={found['threshold']:g}")
    return (
        f"Ranked by probability, the first {percent(found['rows'])} of the rows hold "
        f"{in_words.of_hundred(found['found'])} of 100 that are “{name}”: "
        f"{predict} --sort {shlex.quote(label)} --top N, or --threshold {threshold}"
    )


def what_matters(facts: Facts) -> str:
    """Return a sentence on the columns, or groups of them, without which the log-loss rises most.

    The first one named is always the greatest. Others are named if they are certain: beyond two standard errors.
    """
    found = _without_repeats(facts)
    certain = [one["nats"] > 2.0 * one["standard_error"] for one in found]
    if not any(certain):
        return "No column matters by itself: without any one of them, it predicts about as well."
    names = [group_text(one["features"]) for one in found]
    if not certain[0]:
        first, others = found[0], [name for name, is_certain in zip(names, certain, strict=True) if is_certain]
        doubt = f"({first['nats']:.3f} ± {first['standard_error']:.3f} nats, so not for certain)"
        return f"What matters most: {names[0]} {doubt}; for certain, but less: {listed(others, _MOST_NAMED)}."
    n_named = [*certain[:_MOST_NAMED], False].index(False)
    others = sum(certain) - n_named
    if len(names) == 1 or (n_named == 1 and not others):
        return f"What matters most: {names[0]}; without it, it predicts worse."
    more = f"; {plural(others, 'other column')} beside" if others > 0 else ""
    return f"What matters most: {listed(names[:n_named])}{more}."


def _without_repeats(facts: Facts) -> list[Facts]:
    """Return columns and groups of them by their importance, each column once: where it stands first."""
    columns = [one | {"features": [one["feature"]]} for one in facts["information"]]
    taken: set[str] = set()
    found = []
    for one in sorted([*columns, *facts["information_of_groups"]], key=lambda one: -one["nats"]):
        if one["nats"] > 0.0 and taken.isdisjoint(one["features"]):
            found.append(one)
        taken |= {*one["features"]}
    return found


def what_to_look_at(facts: Facts) -> str:
    """Return a sentence on the rows whose label the model doubts most; empty if there is none."""
    rows = facts["rows_to_look_at"]
    if not rows:
        return ""
    first = rows[0]
    if first["row"] is None:
        return "Rows whose label it doubts are in the report."
    places = listed([str(one["row"]) for one in rows])
    one, it = ("Row", "its label") if len(rows) == 1 else ("Rows", "their labels")
    explain = f"posteriori explain {shlex.quote(facts['output'])} {shlex.quote(facts['table'])} --row {first['row']}"
    return f"{one} to look at: {places}, as it gives {it} at most {percent(rows[-1]['probability'])}: {explain}"


def what_is_saved(facts: Facts) -> str:
    """Return the sentence that names the saved model, and a pool's members by what they see."""
    output = facts["output"]
    members = sorted((one for one in facts["candidates"] if one["weight"]), key=lambda one: -one["weight"])
    seen = [one["sees"] for one in members if one["member"] != "pool"]
    if not seen:
        return f"saved to {output}"
    return f"saved to {output}: a pool of {plural(len(seen), 'model')}, {listed(seen)}"


def _leaks(facts: Facts) -> list[str]:
    """Return the alerts on columns that predict the class alone, with the names of all of them."""
    of_kind = {kind: [one for one in facts["alerts"] if one["kind"] == kind] for kind in LEAKS}
    return [
        f"alert: {listed([label_text(name) for one in found for name in one['columns']], len(found))}: {kind}"
        for kind, found in of_kind.items()
        if found
    ]


def _notes(facts: Facts) -> Iterable[str]:
    """Yield hints, and alerts that are no hints and no leaks."""
    yield from (f"hint: {hint}" for hint in facts["hints"])
    drifting = [name for alert in facts["alerts"] if alert["kind"] == _DRIFT for name in alert["columns"]]
    for alert in facts["alerts"]:
        columns, meaning = alert["columns"], ""
        if alert["kind"] == _DRIFT:
            if columns[0] != drifting[0]:
                continue  # the first one names all
            columns, meaning = drifting, _meaning_of_drift(facts)
        if alert["kind"] not in ("constant", *LEAKS):
            yield f"alert: {listed([label_text(name) for name in columns], 3)}: {alert['kind']}{meaning}"


def _meaning_of_drift(facts: Facts) -> str:
    """Return a caution on the scores for later rows; empty if these are scores of the last rows."""
    held = facts["hold_out"]
    if held is not None and held["by"] is not None:
        return ""
    dates = [column["part_of"] for column in facts["columns"] if "part_of" in column]
    advice = f"--holdout-by {shlex.quote(dates[0])} scores the latest ones" if dates else "evaluate on the latest ones"
    return f"; if their order is time, the scores may be optimistic for later rows: {advice}"


def print_first_page(facts: Facts) -> None:
    """Print how good the model is, whether to trust it, what matters, what to look at, and where the rest is."""
    out = console()
    features = {column.get("part_of", column["name"]) for column in facts["columns"]}
    classes = listed([f"{label_text(one['class'])} {one['rows']:,}" for one in facts["classes"]], 4)
    rows, columns = plural(facts["rows"], "row"), plural(len(features), "feature")
    out.print(f"{facts['table']}: {rows}, {columns}; {label_text(facts['target'])}: {classes}")
    if facts["unlabelled"]["rows"]:
        out.print(unlabelled_line(facts["unlabelled"]))
    out.print()
    if facts["hold_out"] is not None:
        out.print(facts["hold_out"]["sentence"])
    print_sentences(out, facts["summary"])
    judged = len(facts["classes"]) > 1
    sentences = what_ranking(facts), what_matters(facts), what_to_look_at(facts)
    for sentence in sentences if judged else ():
        if sentence:
            out.print(sentence, soft_wrap=True)
    notes = list(_notes(facts)) if judged else []
    leaks = _leaks(facts) if judged else []
    if notes or leaks:
        out.print()
    for leak in leaks:
        out.print(leak)
    for note in notes[:_MOST_NOTES]:
        out.print(note if len(note) <= _MOST_LETTERS else f"{note[: _MOST_LETTERS - 1]}…")
    if len(notes) > _MOST_NOTES:
        out.print(f"and {plural(len(notes) - _MOST_NOTES, 'more note')}")
    out.print()
    if facts["language_note"]:
        out.print(in_seen_words(facts["language_note"]), soft_wrap=True)
    out.print(what_is_saved(facts), soft_wrap=True)
    if facts["report"]:
        out.print(f"report: {facts['report']}", soft_wrap=True)
    report = "" if facts["report"] else "; a report with pictures: --report FILE.html"
    out.print(f"columns, scores and candidates: --details{report}")
