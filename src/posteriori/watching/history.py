"""The history of a monitor as a page: the evidence of each stream, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from posteriori.plotting.reading import Scale
from posteriori.reporting.charts import AFTER, WIDTH, Panel, chart, figure, text_width, tick_text
from posteriori.reporting.markup import HtmlPage, Section, affordable, gallery, number, page, paragraph, table
from posteriori.support.formatting import exponential, plural
from posteriori.support.markup import Html, element
from posteriori.support.typing import Array
from posteriori.version import __version__
from posteriori.watching.state import State

_TITLE, _HEIGHT, _BELOW = 20.0, 110.0, 22.0  # pixels
_LIMIT = "var(--orange)"
_LEAD = (
    "The evidence of a stream is the capital of a gambler who bets on a change, and starts with 1. Without a change it "
    "rarely grows: the probability that the evidence of any stream ever reaches its limit, the dashed line, is at most "
    "{rate:g}. The vertical axes are powers of ten."
)


def history_page(state: State, title: str, model: str) -> HtmlPage:
    """Return the page of a history."""
    sections = [_evidence_section(state), _batches_section(state)]
    footer = [paragraph(f"Written by posteriori {__version__} about ", element("code", " ".join(model.split())), ".")]
    return HtmlPage(title, str(page(title, _summary(state), sections, footer)))


def _summary(state: State) -> Iterator[Html]:
    batches = state.history[1:]
    rows = sum(one.n_rows for one in batches)
    reference = plural(state.history[0].n_rows, "row")
    yield paragraph(f"{plural(len(batches), 'batch')}, {plural(rows, 'row')}; the reference has {reference}.")
    alarms = [f"{one.name} since batch {one.alarm}" for one in state.streams if one.alarm is not None]
    yield paragraph(f"Alarms: {'; '.join(alarms)}." if alarms else "No alarm: no sign that the model no longer holds.")


def _evidence_section(state: State) -> Section:
    log_e = np.array([one.log_e for one in state.history]) / np.log(10.0)
    order = sorted(range(len(state.streams)), key=lambda k: (state.streams[k].alarm is None, -float(log_e[:, k].max())))
    pictures = affordable(_picture(state, k, log_e[:, k]) for k in order)
    lead = _LEAD.format(rate=state.false_alarms)
    return Section("evidence", "Evidence of a change", lead, tuple(gallery(pictures, "other stream")))


def _picture(state: State, k: int, log_e: Array) -> Html:
    stream = state.streams[k]
    limit = -np.log10(stream.level)
    high = 1.05 * max(float(log_e.max()), limit)
    low = min(float(log_e.min()), 0.0)
    left = max(text_width(tick_text(value)) for value in (low, round(high))) + 16.0
    panel = Panel(_TITLE, _HEIGHT, (0.0, max(len(log_e) - 1.0, 1.0)), (low, high), WIDTH, left)
    at = np.arange(len(log_e), dtype=np.float64)

    def parts() -> Iterator[Html]:
        yield from panel.axes("log₁₀ evidence, by batch", Scale())
        yield panel.line(np.array(panel.across), np.full(2, limit), _LIMIT, "dashed")
        yield panel.line(at, log_e, AFTER)

    label = f"Evidence of {stream.name} by batch"
    now = exponential(stream.evidence.log_e, 2)
    verdict = f"evidence {now}" if stream.alarm is None else f"alarm at batch {stream.alarm}, evidence {now} now"
    return figure(chart(parts(), _TITLE + _HEIGHT + _BELOW, label), f"{stream.name}: {verdict}")


def _batches_section(state: State) -> Section:
    head = ("batch", "rows", "with labels", "mean log p(x)", "log-loss", "alarms")
    rows: list[Sequence[str]] = []
    for place, one in enumerate(state.history):
        raised = ", ".join(stream.name for stream in state.streams if place and stream.alarm == place)
        name = str(place) if place else "reference"
        figures = number(one.log_density), number(one.log_loss)
        rows.append((name, f"{one.n_rows:,}", f"{one.n_labelled:,}", *figures, raised))
    lead = (
        "Means over the rows of each batch, in nats: log p(x) is less where rows are less probable, log-loss is more "
        "where labels are less probable."
    )
    return Section("batches", "Batches", lead, (table("Batches", head, rows, text=(0, 5)),))
