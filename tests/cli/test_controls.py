"""Controls in the text of another person's model, table or network are shown on a terminal, and not obeyed."""

import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from rich.file_proxy import FileProxy

import posteriori as po
from posteriori.cli.terminal import PlainText, unwrapped, without_controls
from posteriori.model_files import file_of
from posteriori.networks import BayesianNetwork
from tests.cli.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("folder")
HOSTILE = "\x1b]0;title\x07\x1b[31mRED\x9b5m\u202e\u2066\rwx"
STYLE = re.compile(r"\x1b\[[0-9;]*m")  # what rich writes
BAR = re.compile(r"\r?\x1b\[(\?25[lh]|2K|1A)")  # and for its bars
COMMANDS = """
show m.posteriori
show m.posteriori --json
show old.posteriori
show new.posteriori
evaluate m.posteriori t.csv
explain m.posteriori t.csv
predict m.posteriori t.csv
predict m.posteriori other.csv
sample m.posteriori -n 3
fit t.csv --target {target} --model nb --details --force -o again.posteriori
fit t.csv --target {target} --force -o pool.posteriori
fit other.csv --target nothing
show pool.posteriori
export m.posteriori
report m.posteriori t.csv -o r.html --force
network show n.json
query n.json
sql m.posteriori
compare t.csv --target {target} --models nb --repeats 1
cv t.csv --target {target} --models nb
cluster t.csv -k 2
network sample n.json -n 3
network show broken.bif
query n.json nothing
"""


def on_a_terminal(commands):
    """Return what commands write to a terminal of 100 columns, all run by one process."""
    script = f"from posteriori.cli import main\nfor words in {commands!r}: main(words)\n"
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100", "NO_COLOR": "", "POSTERIORI_DEBUG": ""}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        found = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # Linux: the terminal is closed
                break
            if not part:
                break
            found += part
    os.close(ours)
    assert process.returncode == 0
    return found.decode().replace("\r\n", "\n")


def write_files():
    """Write a table, a model and a network of which every string is hostile."""
    rng = np.random.default_rng(0)
    y = np.repeat([f"a{HOSTILE}", f"b{HOSTILE}"], 60)
    frame = pl.DataFrame(
        {
            f"x{HOSTILE}": rng.normal(size=120) + (y == y[0]),
            f"k{HOSTILE}": rng.choice([f"u{HOSTILE}", f"v{HOSTILE}"], 120),
            f"same{HOSTILE}": [HOSTILE] * 120,
            f"id{HOSTILE}": [f"{k}{HOSTILE}" for k in range(120)],
            f"y{HOSTILE}": y,
        }
    )
    frame.write_csv("t.csv")
    frame.select(pl.all().name.suffix("z")).write_csv("other.csv")
    po.save(po.NaiveBayes().fit(frame.drop(f"id{HOSTILE}"), f"y{HOSTILE}"), "m.posteriori")
    for name, number in (("old", "1"), ("new", "99")):
        Path(f"{name}.posteriori").write_bytes(file_of("{}", "", {}, posteriori=HOSTILE, format=number))
    states = [f"s{HOSTILE}", f"t{HOSTILE}"]
    net = BayesianNetwork([(f"v{HOSTILE}", f"w{HOSTILE}")]).fit(
        pl.DataFrame({f"v{HOSTILE}": states * 20, f"w{HOSTILE}": states * 10 + states[::-1] * 10})
    )
    po.write_network(net, "n.json")
    Path("broken.bif").write_text(f"network a {{ }}\nvariable {HOSTILE} {{")


@pytest.mark.filterwarnings("ignore")
def test_no_control_of_a_file_reaches_the_terminal():
    write_files()
    named = {"{target}": f"y{HOSTILE}"}
    commands = [[named.get(word, word) for word in line.split()] for line in COMMANDS.strip().splitlines()]
    found = on_a_terminal(commands)
    assert found.count(r"\x1b[31mRED") > 100
    assert found.count(r"\u202e") > 100
    assert STYLE.search(found)  # our own
    assert r"\x1b[38;5;" not in found
    assert "unexpected" not in found
    assert "no such" not in found
    assert "\x1b[31mRED" not in found
    rest = STYLE.sub("", BAR.sub("", found))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", rest)


@pytest.mark.filterwarnings("ignore")
def test_data_in_a_file_or_a_pipe_stays_as_it_is():
    write_files()
    run = CommandLine().run
    code, out, err = run("predict", "m.posteriori", "t.csv")
    assert code == 0
    assert f"a{HOSTILE}" in out
    assert "\x1b" not in err
    assert "\x1b" not in run("show", "new.posteriori")[2]


def test_tabs_line_ends_and_letters_stay():
    text = "a\tb\nç – 猫 \u200d"
    assert without_controls(text) == text
    assert without_controls("\x00\x1b\x7f\x85\u2069") == r"\x00\x1b\u007f\u0085\u2069"


def test_json_on_a_terminal_is_valid():
    write_files()
    found = on_a_terminal([["show", "m.posteriori", "--json"]])
    assert HOSTILE in json.loads(found)["target"]


def test_data_is_never_written_with_other_letters():
    rows = pl.DataFrame({"x": ["łódź", "b"] * 30, "y": ["łódź", "b"] * 30})
    rows.write_csv("letters.csv")
    po.save(po.NaiveBayes().fit(rows, "y"), "letters.posteriori")
    script = "import sys; from posteriori.cli import main; sys.exit(main())"

    def run(*words):
        environment = os.environ | {"PYTHONIOENCODING": "ascii"}
        return subprocess.run([sys.executable, "-c", script, *words], capture_output=True, env=environment, check=False)

    for words in (("predict", "letters.posteriori", "letters.csv"), ("sample", "letters.posteriori", "-n", "9")):
        done = run(*words)
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.startswith(b"error: stdout is ascii text, which has no ")
    assert "łódź" in str(json.loads(run("show", "letters.posteriori", "--json").stdout))


def test_the_last_word_of_a_command_passes_its_bar():
    stream = io.StringIO()
    assert unwrapped(FileProxy(Console(file=stream), PlainText(stream))) is stream
    assert unwrapped(stream) is stream
