"""Run the command line in the process of the tests, and check its exit code and output."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass

from posteriori.cli import main

WRITING = ("fit", "predict", "impute", "sample", "explore", "report", "export", "compare", "cluster", "merge")


@dataclass(frozen=True)
class CommandLine:
    """The command line.

    `model` is the model that `fit` fits if the arguments name none, None for its own default. With `replaces`, commands
    replace files that exist, for tests that use a name again. `details` lets `fit` print all that it knows.
    """

    model: str | None = None
    replaces: bool = False
    details: bool = True

    def run(self, *arguments):
        """Return the exit code, stdout and stderr."""
        words = [str(argument) for argument in arguments]
        if self.model and words[:1] == ["fit"] and "--model" not in words and len(words) > 2:
            words += ["--model", self.model]
        if self.details and words[:1] == ["fit"] and len(words) > 2 and not {"--json", "--details"} & set(words):
            words += ["--details"]
        if self.replaces and words[:1] and words[0] in WRITING:
            words += ["--force"]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
        return code, out.getvalue(), err.getvalue()

    def succeeds(self, *arguments):
        """Return stdout; the exit code has to be 0."""
        code, out, err = self.run(*arguments)
        assert code == 0, err
        return out

    def refused(self, *arguments):
        """Return the error; the exit code has to be 2 and the error one line, the only output except warnings."""
        code, out, err = self.run(*arguments)
        assert (code, out) == (2, ""), (code, out, err)
        lines = [line for line in err.splitlines() if not line.startswith("warning: ")]
        assert len(lines) == 1, err
        assert lines[0].startswith("error: ")
        return lines[0].removeprefix("error: ")
