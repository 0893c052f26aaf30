"""Monitor: quiet batches, shifted columns, other labels, its file, and refused input."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import posteriori as po
from posteriori import model_files


def table(n, seed, shift=0.0, flipped=False):
    """Return rows of four columns, of which d is independent of the label, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    b = np.where(rng.random(n) < 0.1, np.nan, rng.exponential(size=n) * (1 + y))
    c = rng.choice(list("uvw"), size=n, p=[0.5, 0.3, 0.2])
    X = pd.DataFrame({"a": rng.normal(size=n) + 2 * y, "b": b, "c": c, "d": rng.normal(size=n) + shift})
    return X, np.array(["no", "yes"])[1 - y if flipped else y]


MODELS = {
    "nb": po.NaiveBayes(),
    "tan": po.TreeAugmentedNaiveBayes(),
    "pool": po.GenerativeClassifier(members=["nb", "tan"], folds=2),
}


@pytest.fixture(scope="module")
def fitted():
    return po.NaiveBayes().fit(*table(600, 0))


def watched(model, **options):
    return po.Monitor(model, *table(300, 1), **options)


def test_quiet_streams_alarm_at_most_as_often_as_stated(fitted):
    """200 monitors at a rate of 0.2, each with reference rows and batches of its own."""
    alarms = 0
    for seed in range(200):
        monitor = po.Monitor(fitted, *table(40, 10_000 + 10 * seed), false_alarms=0.2, seed=seed)
        for batch in range(1, 4):
            monitor.update(*table(40, 10_000 + 10 * seed + batch))
        alarms += bool(monitor.alarms)
    assert alarms / 200 <= 0.2 + 2 * np.sqrt(0.2 * 0.8 / 200)


@pytest.mark.parametrize("name", MODELS)
def test_a_shifted_column_is_named_and_labels_are_not(name):
    monitor = watched(MODELS[name].fit(*table(600, 0)))
    for seed in range(2, 5):
        assert monitor.update(*table(200, seed)).sentences[0].endswith("nothing changed")
    found = [monitor.update(*table(200, seed, shift=1.0)) for seed in range(5, 7)]
    assert found[-1].columns == ("d",)
    assert "log-loss" not in monitor.alarms
    assert any("column 'd' changed: numbers are larger" in str(one) for one in found)
    assert "column 'd' (batch" in str(monitor.update(*table(50, 8, shift=1.0)))


def test_flipped_labels_raise_the_alarm_of_the_log_loss_alone(fitted):
    monitor = watched(fitted)
    found = monitor.update(*table(200, 2, flipped=True))
    assert found.alarms == found.standing == ("log-loss",)
    assert found.columns == ()
    assert "labels are less probable" in str(found)
    now, before = (round(100 * fitted.score(*rows)) for rows in (table(200, 2, flipped=True), table(300, 1)))
    assert found.sentences[0].endswith(f"; alarm: of 100 rows it now predicts {now} right; {before} before")
    assert monitor.history[0].log_loss > 1.0 > monitor._state.history[0].log_loss
    later = monitor.update(*table(200, 3, shift=2.0, flipped=True))
    assert later.sentences[0].endswith(f" right; {before} before")  # without the batch that was alarmed


def test_changed_dependence_alarms_the_log_density_alone():
    rng = np.random.default_rng(0)

    def rows(n, reversed_):
        y, u = rng.integers(2, size=(2, n))
        return pd.DataFrame({"u": u, "v": 1 - u if reversed_ else u}).astype(str), y

    model = po.TreeAugmentedNaiveBayes().fit(*rows(500, False))
    monitor = po.Monitor(model, rows(300, False)[0])
    monitor.update(rows(300, False)[0])
    assert monitor.update(rows(300, True)[0]).standing == ("log p(x)",)


def test_missing_cells_and_unseen_categories_change_a_column(fitted):
    monitor = watched(fitted)
    X, y = table(200, 2)
    X.loc[:99, "a"] = np.nan
    X.loc[100:, "c"] = "new"
    found = monitor.update(X, y)
    assert set(found.columns) == {"a", "c"}
    assert "column 'a' changed: 50% of its cells are missing or unseen categories, 0% before" in str(found)


def test_the_category_that_changed_most_is_named(fitted):
    monitor = watched(fitted)
    X, y = table(200, 2)
    X["c"] = np.where(np.arange(200) < 120, "w", X["c"])
    found = str(monitor.update(X, y))
    assert re.search(r"column 'c' changed: (6|7)\d% of its cells are 'w', (1|2)\d% before", found), found


def test_labels_may_come_for_some_rows_or_none(fitted):
    monitor = watched(fitted)
    X, y = table(100, 2)
    assert monitor.update(X).n_labelled == 0
    some = np.where(np.arange(100) < 30, y, None)
    assert monitor.update(X, some).n_labelled == 30
    assert monitor.update(X.assign(label=y), "label").n_labelled == 100
    before = monitor._state.streams[1].evidence
    monitor.update(X)
    assert monitor._state.streams[1].evidence is before


def test_batch_labels_are_left_out_if_the_reference_has_none(fitted):
    monitor = po.Monitor(fitted, table(100, 1)[0])
    found = monitor.update(*table(100, 2))
    assert found.n_labelled == 0
    assert "the labels are not watched" in str(found)


def test_the_levels_of_all_streams_sum_to_the_stated_rate(fitted):
    for reference in (table(100, 1), (table(100, 1)[0],)):
        streams = po.Monitor(fitted, *reference, false_alarms=0.05)._state.streams
        assert sum(one.level for one in streams) == pytest.approx(0.05)


def test_a_file_continues_exactly(fitted, tmp_path):
    po.save(fitted, tmp_path / "m.posteriori")
    whole, parts = watched(fitted), watched(fitted)
    for seed in range(2, 6):
        batch = table(60, seed, shift=float(seed > 3))
        parts.save(tmp_path / "m.watch")
        parts = po.Monitor.load(tmp_path / "m.watch", po.load(tmp_path / "m.posteriori"))
        assert parts.update(*batch) == whole.update(*batch)
    assert parts._state.history == whole._state.history
    assert parts.alarms == whole.alarms
    assert parts.page().html == whole.page().html


def test_the_page_shows_each_stream_and_escapes_names(fitted):
    X, y = table(300, 0)
    X = X.rename(columns={"a": "<b>bold</b>"})
    model = po.NaiveBayes().fit(X[:150], y[:150])
    monitor = po.Monitor(model, X[150:], y[150:])
    monitor.update(X[:50], y[:50])
    html = monitor.page("History").html
    assert "<b>bold" not in html
    assert html.count("<svg") == 6
    assert "No alarm" in html


def test_training_rows_as_reference_are_warned_of(fitted):
    from posteriori.classifiers.training_record import record_rows

    X, y = table(100, 0)
    model = po.NaiveBayes().fit(X, y)
    record_rows(model, X)
    with pytest.warns(UserWarning, match="100% of the reference rows are among"):
        po.Monitor(model, X, y)


@pytest.mark.parametrize(
    ("given", "options", "sentence"),
    [
        ((), {}, "Monitor needs reference="),
        ((table(19, 1)[0],), {}, "the reference has 19 rows; give at least 20"),
        ((table(30, 1)[0], [*table(5, 1)[1], *[None] * 25]), {}, "the reference has 5 rows with labels"),
        ((table(30, 1)[0],), {"false_alarms": 0.0}, "false_alarms is 0.0; give a probability"),
        ((table(30, 1)[0],), {"false_alarms": float("nan")}, "false_alarms is nan"),
        ((table(0, 1)[0],), {}, "0 sample"),
        ((table(30, 1)[0].drop(columns="a"),), {}, "the reference lacks column 'a', which the model needs"),
    ],
)
def test_an_unsuitable_start_is_refused_in_one_sentence(fitted, given, options, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        po.Monitor(fitted, *given, **options)
    assert "\n" not in str(error.value)


def test_unsuitable_batches_are_refused_and_change_nothing(fitted):
    monitor = watched(fitted)
    X, y = table(30, 2)
    for batch, sentence in [
        ((X[:0],), "0 sample"),
        ((X.drop(columns="d"),), "the batch lacks column 'd', which"),
        ((X, ["other", *y[1:]]), "y holds 'other', which is not among the classes; fit a model that knows this class"),
        ((X, y[:5]), "5"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            monitor.update(*batch)
    assert monitor.n_batches == 0


def changed(content, *keys, value):
    """Return a copy of the content of a state with one value replaced."""
    copy = json.loads(json.dumps(content))
    place = copy
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return copy


def test_damaged_files_are_refused_in_one_sentence(fitted, tmp_path):
    monitor = watched(fitted)
    monitor.update(*table(30, 2))
    path = tmp_path / "m.watch"
    monitor.save(path)
    whole = path.read_bytes()
    header, arrays = model_files.read_file(path)
    content = json.loads(header["content"])
    state = ("fitted", "fields")
    history, streams = (*state, "history", "tuple"), (*state, "streams", "tuple")
    figures, stream = (*history, 1, "fields"), (*streams, 0, "fields")
    edges, counts, capital = (f"state.streams.0.evidence.{name}" for name in ("edges", "counts", "log_capital"))

    def file_of(content, arrays, **metadata):
        return model_files.file_of(json.dumps(content), "{}", arrays, **metadata)

    def with_number(name, place, number):
        array = arrays[name].copy()
        array[place] = number
        return arrays | {name: array}

    po.save(fitted, tmp_path / "m.posteriori")
    crafted = [
        b"",
        b"\xff\xfe\x00",
        b"[]",
        b"{}",
        whole[: len(whole) // 2],
        (tmp_path / "m.posteriori").read_bytes(),
        file_of(content, arrays, format="99"),
        *(
            file_of(changed(content, *keys, value=value), arrays)
            for keys, value in [
                (("model",), "NaiveBayes"),
                (("fitted",), {"estimator": {"model": "NaiveBayes"}}),
                (("fitted",), content["fitted"]["fields"]["streams"]),
                ((*state, "seed"), -1),
                ((*state, "seed"), 1.5),
                ((*state, "false_alarms"), "0.1"),
                ((*state, "false_alarms"), 1.5),
                ((*state, "streams"), None),
                (history, []),
                ((*stream, "kind"), "other"),
                ((*streams, 2, "fields", "column"), None),
                ((*stream, "evidence", "fields", "log_capital"), None),
                ((*stream, "evidence", "fields", "n_batches"), 7),
                ((*stream, "evidence", "fields", "n_batches"), 0),
                ((*stream, "level"), 0.0),
                ((*stream, "alarm"), 5),
                ((*history, 0, "fields", "log_e", "tuple"), []),
                ((*figures, "n_rows"), True),
                ((*figures, "n_rows"), -1),
                ((*figures, "log_loss"), {"float": "inf"}),
            ]
        ),
        *(
            file_of(content, changed_arrays)
            for changed_arrays in [
                arrays | {counts: np.ones(1)},
                arrays | {counts: arrays[counts].astype(np.int64)},
                arrays | {capital: np.zeros(1)},
                with_number(counts, 0, -1.0),
                with_number(edges, 1, np.nan),
                with_number(edges, 1, 1e300),
                with_number(edges, 1, -1e300),
                with_number(capital, 0, -np.inf),
            ]
        ),
    ]
    path.write_bytes(file_of(content, arrays))
    po.Monitor.load(path, fitted)
    for damaged in crafted:
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="is not the state of a monitor") as error:
            po.Monitor.load(path, fitted)
        assert "\n" not in str(error.value)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        po.Monitor.load(tmp_path / "none", fitted)
    monitor.save(path)
    with pytest.raises(ValueError, match="does not hold a model"):
        po.load(path)


def test_the_state_of_another_model_is_refused(fitted, tmp_path):
    watched(fitted).save(tmp_path / "m.watch")
    other = po.NaiveBayes().fit(*table(600, 99))
    with pytest.raises(ValueError, match="is the state of a monitor of another model"):
        po.Monitor.load(tmp_path / "m.watch", other)
