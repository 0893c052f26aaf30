"""The pages that fit prints of a model of classes, of a number and of all columns: the first page, and the details."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from posteriori.cli.model_page import pools_of, print_links
from posteriori.cli.options import spellings, unlabelled_line
from posteriori.cli.tables import (
    NAME,
    bar,
    console,
    fits,
    group_text,
    label_text,
    new_table,
    print_alerts,
    print_candidates,
    print_information,
    print_members,
    print_number_importance,
    print_parameter_count,
    print_rows,
    print_scores,
    print_sentences,
    print_table,
)
from posteriori.densities import column_label
from posteriori.model_selection import in_words
from posteriori.reading.spellings import spelled_alike
from posteriori.registry import REGRESSOR, REGRESSORS, in_seen_words, seen_by
from posteriori.reporting.alerts import LEAKS
from posteriori.support.formatting import listed, number, percent, plural

if TYPE_CHECKING:
    from posteriori.facts.model import Facts

_MOST_NOTES = 4  # hints and alerts
_MOST_LETTERS = 200  # of a note
_MOST_NAMED = 3  # columns
_MOST_COLUMNS = 12
_FEW_CLASSES = 8
_WELL = 0.5  # a share of the entropy
_WIDE = 100  # columns of a terminal
_DRIFT = "changes along the rows"
_NOTHING = "It needs no single column: without any one of them, it predicts about as well."


def print_fit(facts: Facts, details: bool) -> None:
    """Print the first page about a fit, or with `details` the columns, the scores and the importance of features."""
    out = console()
    if facts["target"] is None:
        _print_joint(out, facts, details)
    elif facts["model"] in REGRESSORS:
        _print_number(out, facts, details)
    elif details:
        _print_details(out, facts)
    else:
        _print_first_page(out, facts)


def _size_of_table(facts: Facts, what: str = "feature") -> str:
    """Return the name of the table and its size; the parts of a date are one column."""
    names = {column.get("part_of", column["name"]) for column in facts["columns"]}
    return f"{facts['table']}: {plural(facts['rows'], 'row')}, {plural(len(names), what)}"


def _print_hints(out: Console, facts: Facts, details: bool) -> None:
    shown = facts["hints"] if details else facts["hints"][:_MOST_NOTES]
    for hint in shown:
        out.print(f"hint: {hint}")
    if len(shown) < len(facts["hints"]):
        out.print(f"and {plural(len(facts['hints']) - len(shown), 'more note')}")
    if shown:
        out.print()


def _print_saved(out: Console, facts: Facts, saved: str) -> None:
    out.print(saved, soft_wrap=True)
    if facts["report"]:
        out.print(f"report: {facts['report']}", soft_wrap=True)


def _print_judgement(out: Console, facts: Facts) -> None:
    """Print how many rows have no label, which rows are held out, and the sentences on how good the model is."""
    if facts["unlabelled"]["rows"]:
        out.print(unlabelled_line(facts["unlabelled"]))
    out.print()
    if facts["hold_out"] is not None:
        out.print(facts["hold_out"]["sentence"])
    print_sentences(out, facts["summary"])


def _matters_most(names: Sequence[str], n_others: int) -> str:
    more = f"; so {'does' if n_others == 1 else 'do'} {plural(n_others, 'other column')}" if n_others > 0 else ""
    return f"What matters most: {listed(names)}{more}."


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
        return _NOTHING
    names = [group_text(one["features"]) for one in found]
    if not certain[0]:
        first, others = found[0], [name for name, is_certain in zip(names, certain, strict=True) if is_certain]
        doubt = f"({first['nats']:.3f} ± {first['standard_error']:.3f} nats, so not for certain)"
        return f"What matters most: {names[0]} {doubt}; for certain, but less: {listed(others, _MOST_NAMED)}."
    n_named = [*certain[:_MOST_NAMED], False].index(False)
    others = sum(certain) - n_named
    if len(names) == 1 or (n_named == 1 and not others):
        return f"What matters most: {names[0]}; without it, it predicts worse."
    return _matters_most(names[:n_named], others)


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


def _print_first_page(out: Console, facts: Facts) -> None:
    """Print how good the model is, whether to trust it, what matters, what to look at, and where the rest is."""
    classes = listed([f"{label_text(one['class'])} {one['rows']:,}" for one in facts["classes"]], 4)
    out.print(f"{_size_of_table(facts)}; {label_text(facts['target'])}: {classes}")
    _print_judgement(out, facts)
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
    _print_saved(out, facts, what_is_saved(facts))
    report = "" if facts["report"] else "; a report with pictures: --report FILE.html"
    out.print(f"columns, scores and candidates: --details{report}")


def _print_details(out: Console, facts: Facts) -> None:
    """Print the columns of the table, the scores of a model of classes and its feature importance."""
    out.print(_size_of_table(facts))
    out.print(_class_line(facts, out.width))
    _print_judgement(out, facts)
    out.print()
    _print_columns(out, facts["columns"])
    _print_hints(out, facts, details=True)
    print_alerts(out, facts["alerts"], beside=["constant"])
    held, found = facts["hold_out"], facts["cross_validation"]
    if held is not None:
        print_scores(out, plural(held["rows"], "held-out row"), held)
    n_labelled = sum(entry["rows"] for entry in facts["classes"])
    subsample = f" on {found['rows']:,} of the rows" if found["rows"] < n_labelled else ""
    print_scores(out, f"{found['folds']}-fold cross-validation{subsample}", found)
    if facts["candidates"]:
        print_candidates(out, facts["candidates"], facts["pool_verdict"])
    if facts["language_note"]:
        out.print(in_seen_words(facts["language_note"]))
    reasons: dict[str, list[str]] = {}
    for name, reason in facts["left_out"].items():
        reasons.setdefault(in_seen_words(reason), []).append(seen_by(name))
    for reason, names in reasons.items():
        out.print(f"left out: {', '.join(names)} ({reason})")
    _print_verdict(out, found, spelled_alike(entry["class"] for entry in facts["classes"]))
    print_information(out, facts)
    print_parameter_count(out, facts)
    _print_saved(out, facts, f"saved to {facts['output']}")


def _class_line(facts: Facts, width: int) -> str:
    """Return the classes with their rows: all of a few, and as many of more as fit on one line."""
    entries = [f"{label_text(entry['class'])} {entry['rows']:,}" for entry in facts["classes"]]
    start = f"target {label_text(facts['target'])} of {plural(len(entries), 'class')}: "
    for shown in range(len(entries), 0, -1):
        more = f" and {len(entries) - shown} more" if shown < len(entries) else ""
        line = start + ", ".join(entries[:shown]) + more
        if len(line) <= width or shown == len(entries) <= _FEW_CLASSES:
            break
    return line


def _print_columns(out: Console, columns: Sequence[Facts]) -> None:
    table = new_table("column", "kind", "missing", "values")
    table.columns[0].max_width = NAME if out.width >= _WIDE else 24
    table.columns[1].justify = table.columns[3].justify = "left"
    table.columns[3].ratio = 1
    for column in columns:
        missing = f"{column['missing']:,} ({column['missing_share']:.1%})" if column["missing"] else "0"
        kind = column["kind"]
        if "cuts" in column:
            kind = plural(len(column["cuts"]) + 1, "bin")
        elif kind == "continuous":
            kind = column_label(column["distribution"], kind)
        table.add_row(label_text(column["name"]), kind, missing, _values(column))
    table.expand = not fits(out, table)
    print_table(out, table)


def _values(column: Facts) -> str:
    if "reason" in column:
        return str(column["reason"])
    if column["kind"] == "categorical":
        first = ", ".join(map(label_text, column["first_categories"]))
        more = ", …" if column["n_categories"] > len(column["first_categories"]) else ""
        return f"{column['n_categories']}: {first}{more}" if first else "none"
    if "n_words" in column:
        return plural(column["n_words"], "word")
    if column["mean"] is None:
        return "none"
    spread = f" ± {number(column['sd'])}" if column["sd"] is not None else ""
    marks = f"; missing: {', '.join(map(repr, column['read_as_missing']))}" if "read_as_missing" in column else ""
    return f"{number(column['mean'])}{spread}, {number(column['min'])} to {number(column['max'])}{marks}"


def _print_verdict(out: Console, found: Facts, alike: Sequence[Sequence[str]]) -> None:
    """Print why the log-loss is above that of the class prior although the columns inform on the class."""
    if found["verdict"] == "overconfident":
        cause = "the classes that are spelled alike" if alike else "features that depend on each other"
        out.print(
            f"hint: the log-loss is above that of the class prior: {cause} may make "
            "the probabilities over-confident; trust the predicted classes more than their probabilities\n"
        )


def _print_number(out: Console, facts: Facts, details: bool) -> None:
    """Print the first page about a model of a number, or all with `details`."""
    spread = facts["target_range"]
    lowest, highest = (number(spread[key], 6, separator=",") for key in ("min", "max"))
    out.print(f"{_size_of_table(facts)}; {label_text(facts['target'])}: {lowest} to {highest}")
    out.print()
    matters = [_what_matters_to_number(facts["importance"])] if "importance" in facts else []
    print_sentences(out, [*facts["summary"], *matters])
    out.print()
    if details:
        _print_columns(out, facts["columns"])
        print_members(out, facts["members"])
        print_number_importance(out, facts)
    _print_hints(out, facts, details)
    spec, is_pool = REGRESSORS[facts["model"]], facts["model"] == REGRESSOR.name
    what = f"pool of {plural(len(facts['members']) - 1, 'regression')}" if is_pool else spec.title
    _print_saved(out, facts, f"saved to {facts['output']}: a {what}")
    out.print(f"new rows: posteriori predict {shlex.quote(facts['output'])} TABLE", soft_wrap=True)
    if not details:
        report = "" if facts["report"] else "; a report with pictures: --report FILE.html"
        out.print(f"columns{', scores and members' if is_pool else ' and scores'}: --details{report}")


def _what_matters_to_number(importance: Sequence[Facts]) -> str:
    """Return a sentence on the columns without which the CRPS rises most, of those where this is certain."""
    certain = [label_text(one["feature"]) for one in importance if one["crps"] > 2.0 * one["standard_error"]]
    if not certain:
        return _NOTHING
    return _matters_most(certain[:_MOST_NAMED], len(certain) - _MOST_NAMED)


def _print_joint(out: Console, facts: Facts, details: bool) -> None:
    """Print what follows from what in a table, and what can be asked next; all columns with `details`."""
    out.print(f"{_size_of_table(facts, 'column')}\n")
    out.print(
        "Without --target, this is a joint model: one distribution of all columns, which answers questions about any "
        "of them. --target NAME fits a model that predicts one column more precisely.\n"
    )
    if details:
        _print_columns(out, facts["columns"])
    _print_explained(out, facts, details)
    print_links(out, facts["links"], details)
    _print_hints(out, facts, details)
    _print_next(out, facts)


def _print_explained(out: Console, facts: Facts, details: bool) -> None:
    found: Sequence[Facts] = facts["explained"]
    if not found:
        out.print("There are too few rows to hold some out and see which columns follow from the others.\n")
        return
    table = new_table("column", "explained", "", "accuracy", "most frequent")
    table.columns[2].justify = "left"
    shown = found if details else found[:_MOST_COLUMNS]
    for one in shown:
        shares = [f"{one[key]:.0%}" if key in one else "" for key in ("accuracy", "most_frequent")]
        table.add_row(label_text(one["column"]), f"{one['share']:.0%}", bar(one["share"], 1.0, 16), *shares)
    print_rows(out, table)
    if len(shown) < len(found):
        out.print(f"and {plural(len(found) - len(shown), 'more column')} (all with --details)")
    out.print(
        "explained: share of the entropy of the column that the other cells of the row explain, on "
        f"{facts['explained_rows']:,} held-out rows; beside the accuracy that of the most frequent category\n"
    )


def _print_next(out: Console, facts: Facts) -> None:
    """Print commands that go on from here, with columns of the table."""
    model = shlex.quote(facts["output"])
    names = [one["column"] for one in facts["explained"]] or facts["can_be_asked"]
    missing = any(column["missing"] for column in facts["columns"])
    table = shlex.quote(facts["table"])
    _print_saved(out, facts, f"saved to {facts['output']}")
    if facts["pools"]:
        out.print(f"with {pools_of(facts)}", soft_wrap=True)
    one = f"{shlex.quote(facts['pools'][0])} --method pool" if facts["pools"] else shlex.quote(names[0])
    out.print(f"one column of new rows: posteriori predict {model} TABLE --target {one}", soft_wrap=True)
    out.print(f"a page about the table: posteriori report {model} {table}", soft_wrap=True)
    if missing:
        out.print(f"missing cells: posteriori impute {table} --model {model} --output FILE", soft_wrap=True)
    finding = _finding(facts["columns"], names[0])
    question = f"P({_quoted(names[1])} | {finding})" if len(names) > 1 else f"P({finding})"
    out.print(f"a question: posteriori query {model} {shlex.quote(question)}", soft_wrap=True)
    out.print(f"any question by clicks: posteriori explore {model}", soft_wrap=True)
    out.print(f"drawn rows: posteriori sample {model} -n 10", soft_wrap=True)
    if facts["explained"] and facts["explained"][0]["share"] >= _WELL:
        out.print(
            f"the best model of one column: posteriori fit {table} --target {shlex.quote(names[0])}", soft_wrap=True
        )


def _quoted(name: str) -> str:
    """Return a name as questions spell it."""
    return name if all(letter.isalnum() or letter in "_-." for letter in name) else f'"{name}"'


def _finding(columns: Sequence[Facts], name: str) -> str:
    """Return a finding about a column, as an example."""
    column = next(one for one in columns if one["name"] == name)
    if column.get("first_categories"):
        return f"{_quoted(name)} = {_quoted(str(column['first_categories'][0]))}"
    return f"{_quoted(name)} > {number(column['mean'], 3)}"
