"""Charts of the report: strips of many classes, calibration curves and dependences, drawn without Matplotlib."""

import itertools
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.model_selection import out_of_fold
from posteriori.plotting.reading import read_batch
from posteriori.reporting.charts import chart, cut_text
from posteriori.reporting.data import ReportData
from posteriori.reporting.dependence_charts import dependence_chart
from posteriori.reporting.dependences import tree_section
from posteriori.reporting.strip_charts import StripChart
from posteriori.reporting.trust import calibration_section
from tests.reporting.test_report import Page

PENGUINS = load_penguins()
N_CLASSES = 12


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+\.?\d*", text)]


def test_a_report_is_written_without_matplotlib(tmp_path):
    """A tree, curves of calibration and effects; then more classes than have effects, which are drawn as strips."""
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import numpy as np, posteriori as po\n"
        "from posteriori.cli import main\n"
        "from posteriori.datasets import load_penguins\n"
        "rows = load_penguins()\n"
        "po.report(po.TreeAugmentedNaiveBayes().fit(rows, 'species'), rows, 'species', 'tree.html')\n"
        f"y = [f'class {{k}}' for k in range({N_CLASSES})] * 10\n"
        "X = np.random.default_rng(0).normal(size=(len(y), 2))\n"
        "po.report(po.NaiveBayes().fit(X, y), X, y, 'strips.html')\n"
        "sys.exit(main(['fit', 'penguins.csv', '--target', 'species', '--model', 'nb', '--report', 'fit.html']))\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True)
    tree, strips, fitted = ((tmp_path / f"{name}.html").read_text("utf-8") for name in ("tree", "strips", "fit"))
    assert "Dependences given the class: " in tree
    assert "Calibration curve per class; the diagonal is ideal" in tree
    assert "as one shaded strip per class" in strips
    assert "Calibration curve per class" in fitted


def strips(column, y=None, n_classes=N_CLASSES):
    """Return the chart of the strips of one column, its page, and the model."""
    y = [f"class {k % n_classes}" for k in range(len(column))] if y is None else y
    X = pl.DataFrame({"x": column})
    columns = po.Columns(categorical_features="x") if isinstance(column[0], str) else None
    model = po.NaiveBayes(columns=columns).fit(X, y)
    drawn = StripChart.of(model, 0, read_batch(model, X))
    page = Page(drawn.written("densities"))
    height = numbers(page.of("svg")[0]["viewbox"])[3]
    assert all(float(text["y"]) < height - 3 for text in page.of("text") if "y" in text)
    return drawn, page, model


def intervals(page):
    """Return the strokes of each layer of shade, as (left, y, right)."""
    layers = [path for path in page.of("path") if path.get("stroke") == "var(--blue)"]
    return [[numbers(run) for run in path["d"].split("M")[1:]] for path in layers]


def test_strips_are_darkest_at_the_mode_and_lighter_away_from_it():
    rng = np.random.default_rng(0)
    column = rng.normal(size=600) + np.arange(600) % N_CLASSES
    drawn, page, model = strips(column)
    layers = intervals(page)
    assert len(layers) == drawn.shade.max() == 12
    lines = sorted({y for layer in layers for _, y, _ in layer})
    assert len(lines) == N_CLASSES
    classes = model.classes_.tolist()
    x = np.quantile(column, [0.005, 0.995])
    step = (layers[0][0][2] - layers[0][0][0]) / np.count_nonzero(drawn.shade[0])
    left = layers[0][0][0] - step * np.flatnonzero(drawn.shade[0])[0]
    for c, y in enumerate(lines):
        runs = [[(a, b) for a, line, b in layer if line == y] for layer in layers]
        assert all(len(of_shade) == 1 for of_shade in runs)  # a normal density has one mode
        for (wide,), (narrow,) in itertools.pairwise(runs):  # a darker area lies within a lighter one
            assert wide[0] <= narrow[0] < narrow[1] <= wide[1]
        middle = x[0] + (np.mean(runs[-1][0]) - left) / step / 200 * (x[1] - x[0])
        if x[0] + 1 < model.theta_[c, 0] < x[1] - 1:
            assert_allclose(middle, model.theta_[c, 0], atol=0.1)
    assert [text for text in page.texts if text.startswith("class")] == classes


def test_the_shades_of_strips_add_up_to_the_density():
    _, page, _ = strips(np.random.default_rng(1).normal(size=120))
    opacity = np.array([float(p["stroke-opacity"]) for p in page.of("path") if p.get("stroke") == "var(--blue)"])
    seen = 1.0 - np.cumprod(1.0 - opacity)
    assert_allclose(seen, 0.96 * np.arange(1, 13) / 12, atol=2e-3)


@pytest.mark.parametrize(("n", "turned", "wide"), [(3, False, False), (9, True, False), (60, True, True)])
def test_category_names_turn_and_charts_widen_without_room(n, turned, wide):
    names = [f"category {k} of the column" for k in range(n)] if turned else list("abc")
    drawn, page, _ = strips(names * 12, n_classes=N_CLASSES if n > 9 else 4)
    svg = page.of("svg")[0]
    assert drawn.is_wide == wide
    assert svg["style"].startswith("width" if wide else "max-width")
    places = [text["transform"] for text in page.of("text") if "transform" in text]
    assert len(places) == (n if turned else 0)
    left, width = [float(numbers(place)[0]) for place in places], numbers(svg["viewbox"])[2]
    assert all(b - a > 12 for a, b in itertools.pairwise(left))
    assert all(x < width for x in left)
    # Estimated letters of 6.8 pixels at 40 degrees: the first name begins within the chart.
    assert not left or left[0] - 0.77 * 6.8 * min(len(names[0]), 24) > -8


def test_strips_of_a_cut_name_show_the_whole_name_on_hovering():
    long = "a class whose name is longer than a chart has room for"
    _, page, _ = strips(np.arange(24.0), y=[long, *"bcdefghijkl"] * 2)
    assert len(page.of("title")) == 1
    assert long in page.texts
    assert "a class whose name is l…" in page.texts
    assert not Page(cut_text("short", "short")).of("title")


def test_strips_of_one_value_have_an_axis():
    _, page, _ = strips(np.full(24, 3.0))
    assert "3" in page.texts


def test_charts_scroll_or_shrink():
    assert Page(chart([], 9, "x", 700)).of("svg")[0]["style"] == "max-width:700px"
    assert Page(chart([], 9, "x", 700, scrolls=True)).of("svg")[0]["style"] == "width:700px"


@pytest.mark.parametrize("target", ["species", "sex"])
def test_calibration_curves_are_the_bins(target):
    rows = PENGUINS.drop_nulls()
    scored = out_of_fold(po.NaiveBayes(), rows, target)
    subject = ReportData.of(po.NaiveBayes().fit(rows, target), rows, target)
    section = calibration_section(subject, scored)
    page = Page(section.contents[-1])
    classes = range(3) if target == "species" else [1]
    curves = [path["d"] for path in page.of("path") if path.get("class") == "curve"]
    assert len(curves) == len(classes)
    dots = page.of("circle")
    # 380 pixels high from 20; 386 wide from 46.
    for c, curve in zip(classes, curves, strict=True):
        x, y = np.reshape(numbers(curve), (-1, 2)).T
        p, hit = scored.filled[:, c], scored.y_true == c
        edges = np.quantile(p, np.linspace(0, 1, 11)[1:-1])
        place = np.array([np.sum(edges < one) for one in p])
        sure, share = ([of[place == b].mean() for b in np.unique(place)] for of in (p, hit))
        assert_allclose((x - 46) / 386, sure, atol=2e-4)
        assert_allclose((400 - y) / 380, share, atol=2e-4)
        gap = np.average(np.abs(np.subtract(sure, share)), weights=np.unique(place, return_counts=True)[1])
        assert f"{subject.label_phrases[c]} (mean gap {gap:.3f})" in page.text
        assert f"{subject.label_phrases[c]} (mean gap {gap:.3f})" in page.of("svg")[0]["aria-label"]
    assert len(dots) == sum(curve.count("L") + 1 for curve in curves)


def boxes(page):
    return [[float(box[key]) for key in ("x", "y", "width", "height")] for box in page.of("rect")]


def arrows(page):
    """Return the path and the tip of the head of each arrow."""
    paths = [path for path in page.of("path") if "class" not in path]
    return [(numbers(way["d"]), numbers(head["d"])[:2]) for way, head in zip(paths[::2], paths[1::2], strict=True)]


def curve(way):
    """Return points along a path of cubic curves."""
    points, t = np.reshape(way, (-1, 2)), np.linspace(0.0, 1.0, 20)[:, np.newaxis]
    pieces = [points[k : k + 4] for k in range(0, len(points) - 1, 3)]
    return np.concatenate(
        [(1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d for a, b, c, d in pieces]
    )


def check_drawing(page, names, edges):
    """Check that all is within the chart, no boxes overlap, and each arrow ends at the box of its child."""
    width, height = numbers(page.of("svg")[0]["viewbox"])[2:]
    place = dict(zip(names, boxes(page), strict=True))
    for name, (x, y, wide, high) in place.items():
        assert 0 <= x < x + wide <= width, name
        assert 0 <= y < y + high <= height, name
        for other, (u, v, across, down) in place.items():
            assert name == other or x + wide <= u or u + across <= x or y + high <= v or v + down <= y
    for (_, child), (way, (x, y)) in zip(edges, arrows(page), strict=True):
        left, top, wide, high = place[child]
        assert left - 0.2 <= x <= left + wide
        assert top - 0.2 <= y <= top + high
        assert len(way) % 6 != 2 or min(curve(way)[:, 0]) >= 0  # a line in place of a curve begins at a box


def test_dependences_in_layers():
    edges = {("a", "b"): 0.5, ("a", "c"): 0.25, ("c", "a very long name of a column"): 0.0}
    names = ["a", "b", "c", "a very long name of a column"]
    page = Page(dependence_chart(names, edges, "what depends on what"))
    check_drawing(page, names, edges)
    for way, (_, tip) in arrows(page):
        assert tip - max(way[1::2]) > 6  # the line ends where the head begins
    widths = [float(path["stroke-width"]) for path in page.of("path") if "stroke-width" in path]
    assert_allclose(widths, [20 / 3, (0.6 + 2.2) * 4 / 3, 0.8], atol=0.051)
    assert {"a → b: 0.500 nats", "a → c: 0.250 nats", "a very long name of a column"} <= set(page.texts)
    assert [text for text in page.texts if re.fullmatch(r"\d\.\d{3}", text)] == ["0.500", "0.250", "0.000"]
    assert page.of("svg")[0]["aria-label"] == "what depends on what"


@pytest.mark.parametrize("is_forest", [True, False])
def test_wide_dependences_have_one_column_per_line(is_forest):
    names = [f"column number {k}" for k in range(30)]
    edges = {(names[0], name): 0.1 for name in names[1:]}
    if not is_forest:
        edges = dict.fromkeys(edges | {(names[1], name): None for name in names[2:]})
    page = Page(dependence_chart(names, edges, "wide"))
    assert len({y for _, y, _, _ in boxes(page)}) == len(names)
    check_drawing(page, names, edges)
    assert numbers(page.of("svg")[0]["viewbox"])[2] < 920  # narrower than a page
    assert len([path for path in page.of("path") if path.get("class") == "axis"]) == is_forest  # the trunk


def test_dependences_are_read_aloud():
    model = po.KDependenceBayes().fit(PENGUINS, "species")
    section = tree_section(ReportData.of(model, PENGUINS, "species"))
    label = Page("".join(section.contents)).of("svg")[0]["aria-label"]
    for child, parents in model.parents_.items():
        assert not parents or f"{child} depends on {parents[0]}" in label


def test_each_class_has_its_dependences():
    rows = PENGUINS.drop("island")
    model = po.classifiers.ChowLiuClassifier().fit(rows, "species")
    page = Page("".join(tree_section(ReportData.of(model, rows, "species")).contents))
    assert len(page.of("svg")) == 3
    for label in model.classes_:
        assert f"Dependences given {label}. Numbers are the information in nats." in page.text


def test_no_dependences_are_said_to_be_none():
    rows = pl.DataFrame({"a": [0.0, 1.0] * 20, "b": ["u", "v", "v", "u"] * 10, "y": ["p", "q", "p", "p"] * 10})
    model = po.KDependenceBayes(k=0).fit(rows, "y")
    page = Page("".join(tree_section(ReportData.of(model, rows, "y")).contents))
    assert page.of("svg")[0]["aria-label"] == "Dependences given the class: none"
