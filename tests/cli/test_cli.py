"""The command line: what it prints is what the library says, and nothing it is given ends in a traceback."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import posteriori as po
from posteriori.cli import commands, fitting, main
from posteriori.cli import files as writing
from posteriori.cli.commands import app
from posteriori.datasets import load_penguins
from posteriori.reading.file_frames import MISSING
from tests.cli.command_line import CommandLine

COMMAND_LINE = CommandLine(model="nb", replaces=True)
run, succeeds, refused = COMMAND_LINE.run, COMMAND_LINE.succeeds, COMMAND_LINE.refused
pytestmark = pytest.mark.usefixtures("folder")


def write(name, text):
    Path(name).write_text(text, encoding="utf-8")
    return name


SMALL = "colour,size,kind\nred,1.5,a\nred,2.5,a\nblue,7,b\nblue,8,b\ngreen,9.5,b\nred,1,a\n"


# Help -------------------------------------------------------------------------------------------


def examples():
    groups = [group.typer_instance for group in commands.app.registered_groups]
    learn_first = sorted(
        (one for group in groups for one in group.registered_commands), key=lambda one: one.callback.__name__ != "learn"
    )
    helps = [command.help for command in (*learn_first, *commands.app.registered_commands)]
    found = [line.strip() for text in helps for line in text.splitlines() if line.startswith("    posteriori ")]
    assert all("\n    posteriori " in text for text in helps)
    return [commands.app.info.epilog.removeprefix("A first look: "), *found]


def test_every_example_of_the_help_runs_in_an_empty_folder():
    for shard in ("north", "south"):  # what merge is given
        succeeds("fit", "penguins.csv", "--target", "species", "--output", f"{shard}.posteriori")
    succeeds("fit", "penguins.csv")  # the joint model that query and sample are given
    for line in examples():
        CommandLine(model="nb").succeeds(*shlex.split(line)[1:])


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "explain", "sample", "show"])
def test_help_shows_the_example_on_a_line_of_its_own(command):
    out = succeeds(command, "--help")
    assert re.search(rf"^ +posteriori {command} penguins", out, re.MULTILINE)


@pytest.mark.parametrize("command", [one.callback.__name__ for one in app.registered_commands])
def test_help_fits_a_terminal_of_80_columns(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = succeeds(command.replace("_", "-"), "--help").splitlines()
    assert max(len(line) for line in lines if not line.startswith("      posteriori ")) <= 80  # an example is one line
    assert len(lines) <= 60
    callback = next(one.callback for one in app.registered_commands if one.callback.__name__ == command)
    reads_tables = "sep" in inspect.signature(callback).parameters
    assert ("Text files and spreadsheets:" in lines) is reads_tables


@pytest.mark.parametrize(("shell", "start"), [("bash", "--ta"), ("fish", "--ta")])
def test_shells_complete_options(shell, start, monkeypatch):
    for name, value in (
        ("_POSTERIORI_COMPLETE", f"complete_{shell}"),
        ("COMP_WORDS", f"posteriori fit {start}"),
        ("COMP_CWORD", "2"),
        ("_TYPER_COMPLETE_ARGS", f"posteriori fit {start}"),
        ("_TYPER_COMPLETE_FISH_ACTION", "get-args"),
    ):
        monkeypatch.setenv(name, value)
    assert "--target" in succeeds().split()


def test_fit_says_what_counts_as_missing():
    out = " ".join(succeeds("fit", "--help").split())
    assert all(word in out for word in MISSING)


def test_no_arguments_show_the_help_and_version_the_version():
    assert succeeds() == succeeds("--help")
    assert succeeds("--version") == f"posteriori {po.__version__}\n"


def test_the_help_of_each_language_names_the_others_command():
    assert "For a database: posteriori sql." in " ".join(succeeds("export", "--help").split())
    assert "For JavaScript: posteriori export." in " ".join(succeeds("sql", "--help").split())


# Refusals ---------------------------------------------------------------------------------------

REFUSALS = [
    (("fit", "absent.csv", "--target", "y"), "there is no file 'absent.csv'"),
    (("fit", "small.csv", "--target", "knd"), "did you mean 'kind'"),
    (("fit", "small.csv", "--target", "KIND"), "did you mean 'kind'"),
    (("fit", "small.csv", "--target", "zzz"), "the columns are 'colour'"),
    (("fit", "small.csv", "--target", "size"), "holds 1.5, so it is a quantity"),
    (("fit", "small.csv", "--target", "kind", "--ignore", "colour,size"), "no column left"),
    (("fit", "small.csv", "--target", "kind", "--ignore", "color"), "--ignore names 'color'"),
    (("fit", "small.csv", "--target", "kind", "--categorical", "sise"), "did you mean 'size'"),
    (("fit", "small.csv", "--target", "kind", "--categorical", "kind"), "not a feature of the table"),
    (
        ("fit", "small.csv", "--target", "kind", "--column", "colour=poisson"),
        "reads 'colour' as poisson, and it holds no numbers",
    ),
    (("fit", "small.csv", "--target", "kind", "--column", "size=poisson"), "column 'size' holds 1.5 in row 0"),
    (("fit", "small.csv", "--target", "kind", "--column", "help"), "the kinds are text, keep, binned, categorical"),
    (("fit", "small.csv", "--target", "kind", "--column", "size=poisson", "--categorical", "size"), "choose one"),
    (
        ("fit", "small.csv", "--target", "kind", "--column", "size=binned", "--column", "size=poisson"),
        "as binned and as poisson",
    ),
    (("fit", "small.csv", "--target", "kind", "--column", "colour=binned"), "holds no numbers; remove it"),
    (("fit", "small.csv", "--target", "kind", "--folds", "1"), "'--folds'"),
    (("fit", "small.csv", "--target", "kind", "--model", "svm"), "'--model'"),
    (
        ("fit", "penguins.csv", "--target", "species", "--model", "qda", "--column", "year=poisson"),
        "--model pool or nb",
    ),
    (
        ("fit", "penguins.csv", "--target", "species", "--model", "lda", "--column", "year=binned"),
        "binned needs --model pool, nb",
    ),
    (("fit", "small.csv", "--target", "kind", "--output", "no/m.posteriori"), "no folder 'no'"),
    (("fit", "small.csv", "--target", "kind", "--output", "small.csv"), "suffix of a table"),
    (("fit", "small.csv", "--target", "kind", "--output", "."), "is a folder"),
    (("cv", "wide.csv"), "'wide.csv' has " + ", ".join(f"'c{j}'" for j in range(12)) + " and 3 more"),
    (("compare", "small.cvs"), "there is no file 'small.cvs'"),
    (("fit",), "missing argument"),
    (("fit", "small.csv", "--target", "kind", "--nonsense"), "no such option"),
    (("nonsense",), "no such command"),
    (("fit", "folder.csv", "--target", "y"), "is a folder"),
    (("fit", "small.json", "--target", "y"), "no suffix that names a table"),
    (("fit", "garbage.xlsx", "--target", "y"), "not a spreadsheet"),
    (("fit", "binary.csv", "--target", "y"), "not text in UTF-8"),
    (("fit", "latin.csv", "--target", "y", "--encoding", "utf-8"), "not UTF-8"),
    (("fit", "latin.csv", "--target", "y", "--encoding", "klingon"), "'klingon' is unknown"),
    (("fit", "small.csv", "--target", "kind", "--sep", "ab"), "the separator is 'ab'"),
    (("fit", "small.csv", "--target", "kind", "--decimal", ";"), "the decimal mark is ';'"),
    (("fit", "dates.parquet", "--target", "y", "--sep", ";"), "options for CSV and TSV files"),
    (("fit", "empty.csv", "--target", "y"), "'empty.csv' is empty"),
    (("fit", "header.csv", "--target", "y"), "has no rows"),
    (("fit", "ragged.csv", "--target", "y"), "in line 2 there are more cells than in the header"),
    (("fit", "garbage.parquet", "--target", "y"), "cannot read 'garbage.parquet'"),
    (("fit", "garbage.arrow", "--target", "y"), "cannot read 'garbage.arrow'"),
    (("fit", "garbage.ndjson", "--target", "y"), "cannot read 'garbage.ndjson'"),
    (("fit", "single.csv", "--target", "y"), "only one column"),
    (("fit", "onerow.csv", "--target", "y"), "only one row"),
    (("fit", "unlabelled.csv", "--target", "y"), "every cell of the target 'y' is missing"),
    (("fit", "infinite.csv", "--target", "y"), "column 'x' holds inf in row 1"),
    (("fit", "many.csv", "--target", "y"), "100 classes in 100 rows"),
    (("fit", "dates.parquet", "--target", "y", "--dates", "decade"), "--dates names 'decade'; name some of days"),
    (("fit", "dates.parquet", "--target", "when"), "the target 'when' is Date"),
    (("predict", "absent.posteriori", "small.csv"), "there is no file 'absent.posteriori'"),
    (("predict", "small.csv", "small.csv"), "is a table, and the model comes first"),
    (("predict", ".", "small.csv"), "is a folder"),
    (("predict", "MODEL", "small.csv"), "the table has no column of the model"),
    (("predict", "MODEL", "penguins.csv", "--output", "out.xls"), "a kind that is not written; write .xlsx"),
    (("predict", "MODEL", "penguins.csv", "--output", "out.csv.zst"), "zstd"),
    (("predict", "MODEL", "penguins.csv", "--output", "no/out.csv"), "no folder 'no'"),
    (("predict", "MODEL", "renamed.csv"), "is it 'bill_lenght_mm'?"),
    (("predict", "MODEL", "renamed.csv", "--output", "renamed.csv"), "overwrite"),
    (("predict", "MODEL", "strings.csv"), "'year' was numeric in training"),
    (("evaluate", "MODEL", "penguins.csv", "--target", "island"), "'Biscoe', which is not a class of the model"),
    (("evaluate", "MODEL", "small.csv"), "no column 'species'"),
    (("explain", "MODEL", "penguins.csv", "--row", "344"), "the rows 0 to 343"),
    (("explain", "MODEL", "penguins.csv", "--row", "-1"), "no row -1"),
    (("sample", "MODEL", "-n", "0"), "'-n'"),
    (("show", "MODEL.cut"), "is not a posteriori model"),
]


@pytest.fixture
def pitfalls(model):
    """Write the files that refusals are about."""
    write("small.csv", SMALL)
    Path("folder.csv").mkdir()
    write("empty.csv", "")
    write("header.csv", "x,y\n")
    write("ragged.csv", "x,y\n1,a,b\n")
    Path("latin.csv").write_bytes("x,y\né,a\nb,b\n".encode("latin-1"))
    Path("binary.csv").write_bytes(b"x,y\n\xe9\x00\x01,a\nb,b\n")
    for kind in ("parquet", "arrow", "ndjson", "xlsx"):
        write(f"garbage.{kind}", "nonsense\n" * 9)
    write("single.csv", "y\na\nb\n")
    write("wide.csv", ",".join(f"c{j}" for j in range(15)) + "\n" + ",".join("1" * 15) + "\n")
    write("onerow.csv", "x,y\n1,a\n")
    write("unlabelled.csv", "x,y\n1,\n2,NA\n")
    write("infinite.csv", "x,y\n1,a\ninf,b\n2,a\n3,b\n")
    write("many.csv", "x,y\n" + "".join(f"{i},name{i}\n" for i in range(100)))
    dates = pl.DataFrame({"when": ["2020-01-01"] * 4, "x": [1, 2, 3, 4], "y": ["a", "b"] * 2})
    dates.with_columns(pl.col("when").str.to_date()).write_parquet("dates.parquet")
    load_penguins().rename({"bill_length_mm": "bill_lenght_mm"}).write_csv("renamed.csv")
    load_penguins().with_columns(pl.lit("long ago").alias("year")).write_csv("strings.csv")
    Path("MODEL.cut").write_bytes(model.read_bytes()[:1000])
    return model


@pytest.mark.parametrize(("arguments", "part"), REFUSALS, ids=[" ".join(arguments) for arguments, _ in REFUSALS])
def test_refusals_are_one_sentence(arguments, part, pitfalls):
    filled = [str(pitfalls) if argument == "MODEL" else argument for argument in arguments]
    assert part in refused(*filled)


def test_a_file_that_must_not_be_read(folder):
    write("t.csv", SMALL)
    os.chmod("t.csv", 0)
    if os.access("t.csv", os.R_OK):
        pytest.skip("this user may read everything")
    assert "permission denied" in refused("fit", "t.csv", "--target", "kind").lower()


def test_interrupts_are_quiet(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "open_and_summarise", interrupt)
    assert run("fit", "t.csv", "--target", "kind") == (130, "", "error: interrupted\n")


def test_defects_are_told_from_refusals(monkeypatch):
    def fail(*_):
        raise KeyError("surprise")

    monkeypatch.setattr(fitting, "open_and_summarise", fail)
    code, out, err = run("fit", "t.csv", "--target", "kind")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "KeyError" in err
    monkeypatch.setenv("POSTERIORI_DEBUG", "1")
    with pytest.raises(KeyError):
        run("fit", "t.csv", "--target", "kind")


def test_memory_that_does_not_suffice_is_a_refusal(monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(fitting, "open_and_summarise", fail)
    assert "not enough memory" in refused("fit", "t.csv", "--target", "kind")


def test_a_reader_that_goes_away_is_no_error(model):
    start = "import sys; from posteriori.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "sample", str(model), "-n", "20000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith(b"island,")
        process.stdout.close()
        assert process.stderr.read() == b""
        # Some kernels let a write that was under way when the reader left pass for a whole one.
        assert process.wait() in (0, 141)


def test_a_closed_pipe_has_the_exit_code_of_the_signal(model):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    err = io.StringIO()
    for arguments in (["sample", str(model)], ["show", str(model)]):
        with contextlib.redirect_stdout(Closed()), contextlib.redirect_stderr(err):
            assert main(arguments) == 141
    assert err.getvalue() == ""


# Anything at all --------------------------------------------------------------------------------

CELLS = st.one_of(
    st.sampled_from(["", "1", "2", "0", "-1", "2.5", "1e400", "NA", "nan", "inf", "null", "9" * 25, " 1"]),
    st.sampled_from(["a", "b", "None", "?", "true", "false", "é", "a b", "[x]", "2020-01-01", '"q,r"']),
    st.sampled_from(['"', "'", "\t", ";", "\x00", "1,2", "\r"]),
)


def never_a_traceback(*arguments):
    code, _, err = run(*arguments)
    assert code in (0, 2), err
    assert all(line.startswith(("error: ", "warning: ", "note: ")) for line in err.splitlines()), err
    assert sum(line.startswith("error: ") for line in err.splitlines()) == (code == 2)
    return code


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch")


@given(st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=0, max_size=14), st.integers(1, 3))
@example([["1", "a"]] * 2 + [["2", "b"]] * 2, 1)
@example([["1", "2", "a"], ["", "1", "b"], ["NA", "2", "a"], ["3", "", "b"]], 2)
def test_any_text_is_fitted_or_refused(scratch, rows, n_features):
    table, model = scratch / "t.csv", scratch / "m.posteriori"
    header = [*(f"x{j}" for j in range(n_features)), "y"]
    table.write_text("\n".join(",".join(row) for row in [header, *rows]), encoding="utf-8", newline="")
    if never_a_traceback("fit", table, "--target", "y", "--output", model) == 0:
        for command in ("predict", "evaluate", "explain"):
            assert never_a_traceback(command, model, table) == 0
        assert never_a_traceback("show", model) == 0
        assert never_a_traceback("sample", model, "-n", 3, "--seed", 0) == 0


@given(st.binary(max_size=60), st.sampled_from(["csv", "tsv", "parquet", "arrow", "ndjson", "csv.gz", "csv.zst"]))
def test_any_bytes_are_refused_or_fitted(scratch, content, kind):
    table = scratch / f"b.{kind}"
    table.write_bytes(content)
    never_a_traceback("fit", table, "--target", "y", "--output", scratch / "m.posteriori")


@given(st.sampled_from(["parquet", "arrow", "ndjson", "csv.gz"]), st.data())
def test_damaged_tables_are_refused_or_read(scratch, kind, data):
    whole = scratch / f"whole.{kind}"
    if not whole.exists():
        frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0] * 5, "z": list("abcd") * 5, "y": ["u", "v"] * 10})
        writing.writer_of(whole)(frame, whole)
    damaged = scratch / f"damaged.{kind}"
    damaged.write_bytes(damage(whole.read_bytes(), data))
    never_a_traceback("fit", damaged, "--target", "y", "--output", scratch / "m.posteriori")


@given(st.data())
def test_damaged_models_are_refused(scratch, fitted, data):
    content = fitted[1].read_bytes()
    changed = damage(content, data)
    path = scratch / "damaged.posteriori"
    path.write_bytes(changed)
    code = never_a_traceback("show", path)
    assert code == (0 if changed == content else 2)


def damage(content, data):
    """Return some bytes cut short, or with one of them changed, or with a part left out."""
    position = data.draw(st.integers(0, len(content) - 1))
    how = data.draw(st.sampled_from(["cut", "flip", "drop"]))
    if how == "cut":
        return content[:position]
    if how == "flip":
        return (
            content[:position] + bytes([content[position] ^ data.draw(st.integers(1, 255))]) + content[position + 1 :]
        )
    return content[:position] + content[position + data.draw(st.integers(1, 9)) :]
