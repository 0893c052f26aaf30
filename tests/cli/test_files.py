"""The command line on files: read part by part, whatever they are, and whatever happens on the way."""

import contextlib
import gzip
import io
import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.classifiers.training_record import record_rows
from posteriori.cli import fitting, main, messages
from posteriori.statistics import description
from posteriori.tables.progress import report_progress
from tests.cli.command_line import CommandLine

CAT = (sys.executable, "-c", "import shutil, sys; shutil.copyfileobj(open(sys.argv[1], 'rb'), sys.stdout.buffer)")
START = "import sys; from posteriori.cli import main; sys.exit(main())"


COMMAND_LINE = CommandLine(replaces=True)
run, succeeds, refused = COMMAND_LINE.run, COMMAND_LINE.succeeds, COMMAND_LINE.refused


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return pl.DataFrame(
        {
            "x": rng.normal(size=n) + y,
            "z": 1e9 + rng.normal(size=n),
            "k": rng.integers(0, 9, n),
            "c": pl.Series(["red", "green", "blue", None]).gather((rng.integers(0, 3, n) + y) % 4),
            "y": pl.Series(["low", "mid", "high"]).gather(y),
        }
    )


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Return a folder with a file that is predicted in several parts, and a model of it."""
    position = tmp_path_factory.mktemp("large")
    rows = table(150_000)
    rows.write_parquet(position / "rows.parquet")
    po.save(po.NaiveBayes().fit(rows.head(1000), "y"), position / "m.posteriori")
    return position


# What is read -----------------------------------------------------------------------------------


def facts_of(*arguments):
    found = json.loads(
        succeeds("fit", *arguments, "--target", "y", "--model", "nb", "--output", "m.posteriori", "--json")
    )
    return {name: value for name, value in found.items() if name != "table"}


def test_folders_globs_and_lists_of_packed_files_are_one_table(folder):
    rows = table(3000)
    rows.write_csv("whole.csv")
    expected = facts_of("whole.csv")
    posterior = po.load("m.posteriori").predict_proba(rows.head(5))
    (folder / "parts").mkdir()
    (folder / "packed").mkdir()
    for part in range(3):
        some = rows.slice(1000 * part, 1000)
        some.write_parquet(f"parts/{part}.parquet")
        Path(f"packed/{part}.csv.gz").write_bytes(gzip.compress(some.write_csv().encode()))
    packed = [f"packed/{part}.csv.gz" for part in range(3)]
    for arguments in (["parts"], ["parts/*.parquet"], packed):
        found = facts_of(*arguments)
        assert_allclose(po.load("m.posteriori").predict_proba(rows.head(5)), posterior)
        for name in ("rows", "classes", "hints", "n_parameters", "cross_validation"):
            assert found[name] == expected[name], name
    succeeds("fit", "parts/*.parquet", "--target", "y", "--model", "nb")
    assert Path("parts.posteriori").exists()
    one, many = succeeds("predict", "m.posteriori", "whole.csv"), succeeds("predict", "m.posteriori", *packed)
    assert one == many


def test_columns_are_described_as_polars_does_in_any_chunks(monkeypatch):
    rows = table(2500)
    rows.write_parquet("t.parquet")
    monkeypatch.setattr(description, "_BATCH_ROWS", 700)
    columns = {column["name"]: column for column in facts_of("t.parquet")["columns"]}
    for name in ("x", "z", "k"):
        found, series = columns[name], rows[name].cast(pl.Float64)
        expected = [series.mean(), series.std(), series.min(), series.max()]
        assert_allclose([found["mean"], found["sd"], found["min"], found["max"]], expected, rtol=1e-7)
    assert columns["c"]["missing"] == rows["c"].null_count()


@pytest.mark.parametrize(("early", "late", "kind"), [("1", "2.5", "continuous"), ("1", "one", "categorical")])
def test_later_rows_may_show_another_type_than_the_first(early, late, kind):
    cells = [early] * 11_000 + [late, "NA"]
    lines = [f"{cell},{'' if i < 11_001 else '7.5'},{'ab'[i % 2]}" for i, cell in enumerate(cells)]
    Path("t.csv").write_text("x,w,y\n" + "\n".join(lines))
    x, w = facts_of("t.csv")["columns"]
    assert (x["kind"], x["missing"]) == (kind, 1)
    assert (w["kind"], w["missing"], w["mean"]) == ("continuous", 11_001, 7.5)


def test_predictions_stream_to_files_as_the_library_makes_them(large):
    rows = pl.read_parquet(large / "rows.parquet", n_rows=150_000)
    rows.write_csv("t.csv")
    model = po.load(large / "m.posteriori")
    for name in ("p.parquet", "p.csv.gz", "p.ndjson"):
        succeeds("predict", large / "m.posteriori", "t.csv", "--proba", "--output", name)
    written = [pl.read_parquet("p.parquet"), pl.read_csv("p.csv.gz"), pl.read_ndjson("p.ndjson")]
    written.append(pl.read_csv(succeeds("predict", large / "m.posteriori", "t.csv", "--proba").encode()))
    expected = model.predict_proba(rows)
    for frame in written:
        assert frame.columns == ["prediction", "p_high", "p_low", "p_mid"]
        assert (frame["prediction"] == model.predict(rows)).all()
        assert_allclose(frame.drop("prediction").to_numpy(), expected, atol=1e-12)


def test_pools_predict_part_by_part_too():
    rows = table(400)
    rows.write_csv("t.csv")
    succeeds("fit", "t.csv", "--target", "y")
    model = po.load("t.posteriori")
    assert po.predict_to(model, po.scan("t.csv"), "p.csv", proba=True) == 400
    written = pl.read_csv("p.csv")
    assert (written["prediction"] == model.predict(rows)).all()
    assert_allclose(written.drop("prediction").to_numpy(), model.predict_proba(rows), atol=1e-12)


# Progress ---------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_every_pass_tells_of_every_row():
    rows = table(40_000)
    rows.write_parquet("t.parquet")
    passes = []

    def begin(what, n_rows):
        passes.append([what, n_rows, 0])

        def done(n, mine=passes[-1]):
            mine[2] += n

        return done

    scan = po.scan("t.parquet", target="y")
    with report_progress(begin):
        model = po.NaiveBayes(n_jobs=1).fit(scan)
        model.predict(scan)
    model.predict(scan)
    assert [one[0] for one in passes] == ["categories", "statistics", "scores"]
    assert all(one[1:] == [40_000, 40_000] for one in passes)


def test_bars_say_what_is_done_where_it_takes_long(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    table(2000).write_parquet("t.parquet")
    for delay in (0.0, 1e9):
        monkeypatch.setattr(messages, "_DELAY", delay)
        err = Terminal()
        out = io.StringIO()
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(out):
            assert main(["fit", "t.parquet", "--target", "y", "--model", "nb"]) == 0
            assert main(["predict", "t.posteriori", "t.parquet"]) == 0
        assert out.getvalue().count("\n") > 2000
        assert "high" not in err.getvalue()
        assert ("predicting" in err.getvalue()) == (delay == 0.0)
        assert ("%" in err.getvalue()) == (delay == 0.0)


# Faults -----------------------------------------------------------------------------------------


def test_a_row_with_too_few_cells_is_named_by_its_line():
    lines = ["x,c,y"] + [f"{i},a,{'uv'[i % 2]}" for i in range(3000)]
    lines[2000] = "7,a"
    Path("t.csv").write_text("\n".join(lines))
    assert "line 2001 of 't.csv' has fewer cells than the 3" in refused("fit", "t.csv", "--target", "y")
    lines[2000] = ""
    Path("t.csv").write_text("\n".join(lines) + "\n\n")
    code, _, err = run("fit", "t.csv", "--target", "y")
    assert code == 0
    assert "2 blank lines are skipped (the first is line 2001)" in err


def test_empty_lines_at_the_end_of_packed_files_are_left_out(folder):
    for part in range(2):
        text = table(50, part).write_csv() + ",,,,\n" * part
        Path(f"{part}.csv.gz").write_bytes(gzip.compress(text.encode()))
    code, out, err = run("fit", "*.csv.gz", "--target", "y", "--model", "nb", "--json")
    assert (code, json.loads(out)["rows"]) == (0, 100)
    assert err == "warning: 1.csv.gz ends in 1 line without any value, left out\n"


def test_types_that_differ_between_files_are_named():
    table(30).write_csv("a.csv")
    table(30).with_columns(x=pl.lit("tall")).write_csv("b.csv")
    said = refused("fit", "a.csv", "b.csv", "--target", "y")
    assert "column 'x' is Float64 in 'a.csv' but String in 'b.csv'" in said


def test_a_file_that_vanishes_is_named(monkeypatch):
    for name in ("a.parquet", "b.parquet"):
        table(300).write_parquet(name)
    open_and_summarise = fitting.open_and_summarise

    def vanish(*arguments):
        found = open_and_summarise(*arguments)
        Path("b.parquet").unlink()
        return found

    monkeypatch.setattr(fitting, "open_and_summarise", vanish)
    assert "'b.parquet' is gone" in refused("fit", "*.parquet", "--target", "y", "--output", "m.posteriori")
    assert not Path("m.posteriori").exists()


@contextlib.contextmanager
def files_of_at_most(n_bytes):
    """Let no file grow beyond a size while the body runs."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_a_file_that_cannot_be_written_to_the_end(large, folder, name):
    predict = ("predict", large / "m.posteriori", large / "rows.parquet", "--proba", "--output", name)
    succeeds(*predict)  # compiles; what is compiled could not be kept under the limit
    Path(name).unlink()
    with files_of_at_most(50_000):
        error = refused(*predict)
    assert error == f"cannot use '{name}': file too large"
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this platform has no device /dev/full")
def test_a_full_disk_behind_stdout(large):
    arguments = ["predict", "--quiet", str(large / "m.posteriori"), str(large / "rows.parquet")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", START, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (2, "error: cannot use 'stdout': no space left on device\n")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this platform has no named pipes")
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_pipe_is_written_to_and_not_replaced(large, folder, suffix):
    predict = ("predict", large / "m.posteriori", large / "rows.parquet", "--output")
    os.mkfifo(f"pipe{suffix}")
    with open("read", "wb") as read, subprocess.Popen([*CAT, f"pipe{suffix}"], stdout=read) as reader:
        try:
            succeeds(*predict, f"pipe{suffix}")
            assert Path(f"pipe{suffix}").is_fifo()
            reader.wait(timeout=60)
        finally:
            reader.kill()
    written = Path("read").read_bytes()
    succeeds(*predict, f"file{suffix}")
    assert written == Path(f"file{suffix}").read_bytes()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this platform has no named pipes")
def test_a_model_is_written_to_a_pipe_without_reading_it(folder):
    table(60).write_csv("t.csv")
    os.mkfifo("pipe.posteriori")
    fit = ("fit", "t.csv", "--target", "y", "--model", "nb", "--folds", "2", "--output", "pipe.posteriori")
    codes = []
    writer = threading.Thread(target=lambda: codes.append(run(*fit)[0]), daemon=True)  # to read the pipe is to wait
    with open("read.posteriori", "wb") as read, subprocess.Popen([*CAT, "pipe.posteriori"], stdout=read) as reader:
        try:
            writer.start()
            writer.join(timeout=60)
            reader.wait(timeout=60)
        finally:
            reader.kill()
    assert codes == [0]
    assert Path("pipe.posteriori").is_fifo()
    assert po.load("read.posteriori").schema_.target == "y"


def test_a_symbolic_link_stays_one_and_its_file_is_replaced(large, folder):
    Path("elsewhere").mkdir()
    Path("link.csv").symlink_to("elsewhere/p.csv")
    for _ in range(2):  # before there is a file, and afterwards
        succeeds("predict", large / "m.posteriori", large / "rows.parquet", "--output", "link.csv")
        assert Path("link.csv").is_symlink()
        assert Path("elsewhere/p.csv").stat().st_size > 0
    assert sorted(path.name for path in folder.rglob("*")) == ["elsewhere", "link.csv", "p.csv"]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this platform has no device /dev/full")
def test_a_full_device_is_named_and_stays_a_device(large, folder):
    Path("full.csv").symlink_to("/dev/full")
    error = refused("predict", large / "m.posteriori", large / "rows.parquet", "--output", "full.csv")
    assert error == "cannot use 'full.csv': no space left on device"
    assert Path("/dev/full").is_char_device()


# Spelling of text files -------------------------------------------------------------------------


def stdin_is(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_german_files_and_stdin_are_read_as_english_files_are(monkeypatch):
    rows = table(300)
    rows.write_csv("english.csv")
    german = rows.write_csv(separator=";", decimal_comma=True).encode("utf-16")
    Path("german.csv").write_bytes(german)
    expected = facts_of("english.csv")
    Path("m.posteriori").unlink()
    code, out, err = run("fit", "german.csv", "-t", "y", "--model", "nb", "-o", "m.posteriori", "--json")
    assert code == 0
    note = (
        "note: german.csv is read with separator ';', decimal comma, encoding utf-16 "
        "(--sep, --decimal and --encoding change that)\n"
    )
    assert err == note
    found = json.loads(out)
    assert {name: found[name] for name in expected if name != "table"} == expected
    predictions = succeeds("predict", "m.posteriori", "english.csv", "--proba")
    for options in ([], ["--sep", ";", "--decimal", ",", "--encoding", "utf-16"]):
        stdin_is(monkeypatch, german)
        assert succeeds("predict", "m.posteriori", "-", "--proba", *options) == predictions
    stdin_is(monkeypatch, german)
    assert (
        run("explore", "m.posteriori", "-", "-o", "page.html", "--sep", ";", "--decimal", ",", "--encoding", "utf-16")[
            0
        ]
        == 0
    )
    stdin_is(monkeypatch, b"x,z,k,c\n1,2\n")
    assert "line 2 of 'stdin' has fewer cells" in refused("predict", "m.posteriori", "-")


def test_the_note_on_words_among_written_numbers(folder):
    cells = [f'"${i},{i:03}"' for i in range(100, 130)] + ["free"]
    Path("t.csv").write_text("price,x,y\n" + "".join(f"{cell},{i % 7},{'ab'[i % 2]}\n" for i, cell in enumerate(cells)))
    assert (
        "column 'price' holds numbers except 'free' (1 of 31 cells; the first in line 32)"
        in run("fit", "t.csv", "-t", "y", "-q")[2]
    )


def test_evaluate_scores_training_rows_out_of_fold():
    rows = table(600)
    rows.write_parquet("all.parquet")
    rows[:300].write_parquet("training.parquet")
    rows[300:].write_parquet("new.parquet")
    rows[150:].write_parquet("both.parquet")
    command = ("fit", "training.parquet", "--target", "y", "--model", "nb", "--output", "m.posteriori", "--json")
    of_fit = json.loads(succeeds(*command))["cross_validation"]["model"]
    scored = "scored by the out-of-fold predictions of fit\n"
    notes = {
        "training": f"note: the model was trained on these rows; they are {scored}",
        "both": f"note: the model was trained on 150 of the 450 rows; these are {scored}",
        "new": "",
    }
    for name, share in (("training", 1.0), ("both", 1 / 3), ("new", 0.0)):
        code, out, err = run("evaluate", "m.posteriori", f"{name}.parquet", "--json")
        assert code == 0
        facts = json.loads(out)
        assert facts["share_of_training_rows"] == pytest.approx(share, abs=0.07)
        assert facts["out_of_fold_rows"] == {"training": 300, "both": 150, "new": 0}[name]
        assert err == notes[name]
        if name == "training":
            assert facts["model"] == pytest.approx(of_fit, rel=1e-3)


def test_evaluate_scores_the_kept_rows_of_a_large_table(monkeypatch):
    monkeypatch.setattr("posteriori.model_selection.held_out_predictions.MOST_KEPT", 100)
    name = table(600).drop("y").columns[0]
    table(600).rename({name: "row"}).write_parquet("t.parquet")  # the name by which rows are numbered
    succeeds("fit", "t.parquet", "--target", "y", "--model", "nb", "--output", "m.posteriori")
    code, out, err = run("evaluate", "m.posteriori", "t.parquet", "--json")
    facts = json.loads(out)
    assert (code, facts["rows"], facts["out_of_fold_rows"]) == (0, 100, 100)
    assert err.endswith("only those rows are scored, 100 of 600\n")


def test_evaluate_warns_of_rows_without_kept_predictions():
    rows = table(600)
    rows.write_parquet("training.parquet")
    model = po.NaiveBayes().fit(rows, "y")
    record_rows(model, rows.drop("y"))
    po.save(model, "m.posteriori")
    code, _, err = run("evaluate", "m.posteriori", "training.parquet", "--json")
    warning = "among those that the model was trained on, so its scores are too optimistic; use other rows\n"
    assert (code, err.endswith(warning)) == (0, True)


@pytest.mark.parametrize("command", ["evaluate", "report"])
@pytest.mark.parametrize("kind", ["saved", "merged", "of a number"])
def test_a_model_without_record_of_its_rows_says_so(kind, command):
    rows = table(100)
    rows.write_parquet("training.parquet")
    if kind == "of a number":
        target = next(name for name, dtype in rows.schema.items() if dtype.is_float())
        po.save(po.AdditiveRegressor().fit(rows.drop("y"), target), "m.posteriori")
    elif kind == "saved":
        po.save(po.NaiveBayes().fit(rows, "y"), "m.posteriori")
    else:
        for name, part in (("a", rows[:50]), ("b", rows[50:])):
            part.write_parquet(f"{name}.parquet")
            succeeds("fit", f"{name}.parquet", "-t", "y", "--model", "nb", "-o", f"{name}.posteriori")
        succeeds("merge", "a.posteriori", "b.posteriori", "-o", "m.posteriori")
    code, out, err = run(command, "m.posteriori", "training.parquet", *(["--json"] if command == "evaluate" else []))
    assert code == 0
    if command == "evaluate":
        assert json.loads(out)["share_of_training_rows"] is None
    if command == "evaluate" or kind != "of a number":  # a report on numbers has no sentence on training rows
        assert "if these rows are among them, the scores are too optimistic" in err


@pytest.mark.parametrize("command", ["explore", "report"])
def test_a_folder_is_no_model(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "'.' is a folder; name the file of a model" in refused(command, ".", "rows.csv")
