"""The evaluator in JavaScript and the explorer: `make bench` runs this and fills RESULTS.md.

Usage: python -m benchmarks.javascript [--quick]

Node.js runs the evaluator, and headless Chromium the page. Times are medians of CPU time of the main thread over ten
calls, so that other work on the machine counts little. An update of a page is everything from the event of a slider, or
a click on a state, until the new layout, except the sections that are computed between frames (next best question,
smallest change, members, best evidence, trails).
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl

import posteriori as po
from benchmarks.timing import Row, report, show
from experiments.real_tables import shared_folder
from posteriori.exploring import explore
from posteriori.javascript import to_javascript
from tests.exploring.browser import Browser
from tests.javascript.engines import in_node

_IN_NODE = """
const network = load(given.network);
const pool = load(given.pool);
const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
function timed(work) {
  for (let call = 0; call < 50; call++) work(call);
  const taken = [];
  for (let turn = 0; turn < given.repeats; turn++) {
    const before = process.cpuUsage();
    for (let call = 0; call < 10; call++) work(turn + call);
    taken.push(process.cpuUsage(before).user / 1e7);
  }
  return median(taken);
}
const cases = given.cases;
const rows = given.rows;
const result = {
  marginals: timed((k) => network.query(cases[k % cases.length])),
  posterior: timed((k) => pool.posterior(rows[k % rows.length])),
  explain: timed((k) => pool.explain(rows[k % rows.length])),
};
"""

# An update N times; what follows between frames is not scheduled.
_IN_PAGE = """(() => {
  const scheduled = window.setTimeout;
  window.setTimeout = () => 0;
  for (let k = 0; k < REPEATS; k++) {
    WORK
    document.body.getBoundingClientRect();
  }
  window.setTimeout = scheduled;
})()"""
_SLIDE = """
    const slider = document.querySelectorAll('input[type=range]')[k % 5];
    slider.value = Number(slider.min) + ((7 * k) % 100) / 100 * (Number(slider.max) - Number(slider.min));
    slider.dispatchEvent(new Event('input'));
"""
_CLICK = """
    const states = document.querySelectorAll('.node button.state');
    states[(11 * k) % states.length].click();
"""


def seconds_of_an_update(browser: Browser, page: Path, work: str, repeats: int) -> float:
    """Return the CPU seconds of the main thread of a page per update: script, style and layout."""
    browser.open(page.as_uri())
    browser.wait()
    browser.send("Performance.enable", timeDomain="threadTicks")

    def run(n: int) -> float:
        def busy() -> float:
            metrics = {one["name"]: one["value"] for one in browser.send("Performance.getMetrics")["metrics"]}
            return float(metrics["ScriptDuration"] + metrics["LayoutDuration"] + metrics["RecalcStyleDuration"])

        before = busy()
        browser.value(_IN_PAGE.replace("REPEATS", str(n)).replace("WORK", work))
        return (busy() - before) / n

    run(20)
    return median(run(10) for _ in range(repeats // 5))


def rows_of_twelve_columns() -> pl.DataFrame:
    """Return 1,000 rows of six numbers and six categories that depend on three classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=1000)
    numbers = {f"number {j}": rng.normal(y * (j % 2), 1.0) for j in range(6)}
    codes = {f"code {j}": np.array(list("abcd"))[(rng.integers(3, size=1000) + y * (j % 2)) % 4] for j in range(6)}
    return pl.DataFrame({**numbers, **codes, "y": y})


def javascript_rows(quick: bool) -> list[Row]:
    """Return the lines of the table."""
    network = po.read_network(shared_folder() / "bif" / "alarm.bif")
    table = rows_of_twelve_columns()
    pool = po.GenerativeClassifier().fit(table, "y")
    repeats = 10 if quick else 100
    drawn = network.sample(20, random_state=0).to_dicts()
    given: dict[str, Any] = {
        "network": to_javascript(network),
        "pool": to_javascript(pool),
        "repeats": repeats,
        "cases": [dict(list(row.items())[k : k + 5]) for k, row in enumerate(drawn)],
        "rows": table.drop("y").head(20).to_dicts(),
    }
    members = f"pool of {len(json.loads(given['pool'])['models'])} members, 12 columns"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        of_node = in_node(_IN_NODE, given, folder)
        explore(pool, path=folder / "pool.html")
        explore(network, path=folder / "network.html")
        browser = Browser(folder / "profile")
        of_page = {
            page: seconds_of_an_update(browser, folder / f"{page}.html", work, repeats)
            for page, work in (("pool", _SLIDE), ("network", _CLICK))
        }
        browser.close()
    return [
        _line("alarm, all marginals and p(evidence), five findings, Node.js", of_node["marginals"], 0.010),
        _line("alarm, click on a state, the whole page, Chromium", of_page["network"], 0.016),
        _line(f"{members}, the posterior, Node.js", of_node["posterior"], 0.016),
        _line(f"{members}, the sum of log factors, Node.js", of_node["explain"], 0.016),
        _line(f"{members}, move a slider, the whole page, Chromium", of_page["pool"], 0.016),
    ]


def _line(work: str, seconds: float, most: float) -> Row:
    return Row(work, show(seconds), "—", "—", f"≤ {show(most)}", seconds <= most)


if __name__ == "__main__":
    report("JavaScript", javascript_rows)
