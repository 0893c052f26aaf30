"""Feature importance, effects and densities of features, and the words that distinguish classes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from posteriori.explain.words import CharacteristicWord, characteristic_words
from posteriori.learning.importance import Importance
from posteriori.plotting.canvas import class_colours
from posteriori.plotting.reading import cells_of, read_batch
from posteriori.reporting.charts import figure, legend
from posteriori.reporting.column_charts import ColumnChart
from posteriori.reporting.data import ReportData
from posteriori.reporting.markup import Section, affordable, bar, fixed, gallery, paragraph, scrolled, table, times
from posteriori.reporting.strip_charts import StripChart
from posteriori.support.formatting import count, listed, plural, shortened
from posteriori.support.markup import Html, element, joined
from posteriori.tables.rows import take_rows

if TYPE_CHECKING:
    from posteriori.support.typing import Array
    from posteriori.tables import Batch


_MOST_WORDS = 10  # for a class
_MOST_AGAINST = 5
_NO_BREAK = "\u00a0"
_LONGEST = 30  # characters of a word


def word_tables(subject: ReportData) -> Iterator[Html]:
    """Yield a table for each column of counts or text: per class, the words that speak for it, and against it."""
    model = subject.model
    statistics = subject.main_member.statistics
    found = characteristic_words(model, statistics, _MOST_WORDS)
    # With two classes, the words against one are those for the other.
    several = len(subject.labels) > 2
    against = characteristic_words(model, statistics, _MOST_AGAINST, against=True) if several else {}
    for name, words in found.items():
        column = model.schema.columns[model.schema.names.index(name)]
        rows = [[label, _listed(of_class)] for label, of_class in zip(subject.labels, words, strict=True)]
        for row, of_class in zip(rows, against.get(name, []), strict=False):
            row.append(_listed(of_class))
        titles = [subject.target, "words that speak for it", "words that speak against it"][: 2 + several]
        title = f"Words of {name}: the most characteristic of {plural(column.width, 'word')}"
        yield table(title, titles, rows, text=tuple(range(len(titles))), stacks=True)
    if found:
        yield paragraph(
            "Behind each word: by how much one occurrence multiplies (or divides) the odds of the class against all "
            "others, and how often it occurs in the rows of the class, or of the other classes if it speaks against "
            "the class.",
            class_="note",
        )


def _listed(words: list[CharacteristicWord]) -> str:
    return "; ".join(_word(one) for one in words) or "none"


def _word(one: CharacteristicWord) -> str:
    occurrences = "" if math.isnan(one.count) else f", {count(one.count)}"
    factor = times(one.log_odds) if one.log_odds >= 0 else times(-one.log_odds).replace("×", "÷")
    odds = f"({factor}{occurrences})".replace(" ", _NO_BREAK)
    return f"{shortened(one.word, _LONGEST)}{_NO_BREAK}{odds}"


_MOST_BARS = 15
_MOST_ROWS = 5000  # drawn behind the curves as histograms
_MOST_CURVES = 8  # classes in one chart; more are drawn as shaded strips
_MOST_CATEGORIES = 80  # in one picture
_MOST_DRAWN = 100  # columns
_MOST_STRIPS = 12  # columns, if there are many classes


def features_section(subject: ReportData, importance: Importance) -> Section:
    """Return feature importance, and the effect and the densities of the columns, the most important first."""
    n_rows = count(importance.n_rows)
    # Not on the rows of the report: models of folds predicted training rows that they had not seen.
    held_out = f"on {n_rows} training rows, each held out from the model that predicted it"
    how = held_out if importance.held_out else f"expected over {n_rows} rows sampled from the model"
    drawn = (
        "effect of each column on the prediction, above its density"
        if _has_effects(subject)
        else "density of each column"
    )
    lead = (
        f"Increase of the log-loss when a column is missing, {how}: the column is integrated out and the class is "
        "predicted from the other columns. Redundant columns share their importance, so each of them may score low; "
        "columns that nearly determine each other are also measured together, as one entry. A "
        "negative value means that the rows were predicted better without the column. The longest bar is the largest "
        f"value. The figures show the {drawn} in each class."
    )
    nats = importance.increase
    modelled = np.array(subject.estimator.schema_.modelled)
    order = modelled[np.argsort(-nats[modelled], kind="stable")]
    names = {subject.estimator.schema_.names[j]: subject.names[j] for j in order}
    entries = [one for one in importance.ranked if names.keys() >= {*one.columns}]
    greatest = max([1e-300, *(one.increase for one in entries)])
    rows = [
        [
            listed([names[name] for name in one.columns], 3),
            f"{fixed(one.increase)} ± {one.standard_error:.3f}",
            bar(max(one.increase, 0.0) / greatest),
        ]
        for one in entries[:_MOST_BARS]
    ]
    more = f", the first {len(rows)} of {len(entries)}" if len(rows) < len(entries) else ""
    contents = [
        table(f"Feature importance{more}", ["column", "increase of log-loss (nats)", ""], rows),
        *word_tables(subject),
        *_pictures(subject, [int(j) for j in order], importance),
    ]
    return Section("features", "Feature importance", lead, tuple(contents))


def _pictures(subject: ReportData, order: Sequence[int], importance: Importance) -> Iterator[Html]:
    """Yield the figures of the most important columns, and those of the others folded, within a budget of bytes."""
    rows = subject.sampled(_MOST_ROWS)
    batch, components = read_batch(subject.estimator, take_rows(subject.X, rows)), subject.components[rows]
    most = _MOST_DRAWN if _has_effects(subject) else _MOST_STRIPS
    chosen = [j for j in order[:most] if not np.isnan(cells_of(batch, j)).all()]
    if _has_effects(subject):
        yield legend(subject.label_phrases, class_colours(len(subject.labels)))
    drawn = affordable(_of_column(subject, j, batch, components, importance) for j in chosen)
    first, *folded = gallery(drawn, "more column")
    yield from (first, paragraph(_how_to_read(subject, len(rows)), class_="note"), *folded)
    if len(drawn) < len(chosen) or len(order) > most:
        yield paragraph(
            f"The other {plural(len(order) - len(drawn), 'column')} matter least and are not drawn; "
            "plotting.plot_effect draws any of them.",
            class_="note",
        )


def _how_to_read(subject: ReportData, n_rows: int) -> str:
    some = f"a random sample of {count(n_rows)} rows" if n_rows < len(subject.labelled) else "the observed rows"
    mixed = " (mixture of the members by their weights)" if subject.lens_name else ""
    if not _has_effects(subject):
        return f"Stronger shades are higher densities under the model{mixed}. The range covers {some}."
    first = f"of {subject.label_phrases[1]} against {subject.label_phrases[0]}"
    which = first if len(subject.labels) == 2 else "of each class against the mean of all classes"
    return (
        f"The effect is what the value adds to the log-odds {which}, with all other columns as they are: the mean over "
        "rows, and a band that covers 80 % of them. 0.69 nats double the odds. Below it, or beside it, are the fitted "
        f"densities{mixed}; shaded histograms show {some}. Where the two agree, the model fits. The axis of a column "
        "with a heavy tail is logarithmic."
    )


def _has_effects(subject: ReportData) -> bool:
    return 1 < len(subject.labels) <= _MOST_CURVES


def _of_column(subject: ReportData, j: int, batch: Batch, components: Array, importance: Importance) -> Html:
    column = subject.model.schema.columns[j]
    caption = joined([element("strong", column.name), f": importance {fixed(importance.increase[j])} nats"])
    if _has_effects(subject):
        label = f"Effect and density of {column.name} in each class of {subject.target}"
        drawn = ColumnChart.of(subject.estimator, j, batch, components).written(label)
        return element("div", figure(drawn, caption))
    if len(column.categories) > _MOST_CATEGORIES:
        words = f": {plural(len(column.categories), 'category')}, too many to draw."
        return element("div", paragraph(caption, words), class_="broad")
    label = f"Density of {column.name} in each class of {subject.target}, as one shaded strip per class"
    strips = StripChart.of(subject.estimator, j, batch)
    if strips.is_wide:
        return element("div", figure(scrolled(strips.written(label), label), caption), class_="broad")
    return element("div", figure(strips.written(label), caption))
