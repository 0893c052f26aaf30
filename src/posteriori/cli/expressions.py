"""Parser of questions in the notation of probability theory: P(lung | smoke=yes, do(tub=no))."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from posteriori.cli.messages import UserError

_WORD = re.compile(r"""\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s=,|()"']+))""")

_DO = re.compile(r"\s*do\s*\(")


@dataclass(frozen=True)
class Question:
    """The variables asked for, each with a state or None for all its states, the evidence, and the interventions."""

    asked: dict[str, str | None]
    given: dict[str, str]
    done: dict[str, str] = field(default_factory=dict)

    @property
    def is_event(self) -> bool:
        """Whether every variable asked for has a state, so that the answer is one number."""
        return all(state is not None for state in self.asked.values())


def parse_question(text: str) -> Question:
    """Parse P(a, b=yes | c=no, do(d=yes)); names and states with spaces or special characters are quoted.

    Raises
    ------
    UserError
        The text is not such an expression; the message shows where parsing failed.
    """
    reader = _Reader(text)
    if not re.match(r"\s*[Pp]\s*\(", text):
        reader.refuse("begin with P(")
    reader.at = text.index("(") + 1
    asked = reader.findings(stated=False)
    given: dict[str, str | None] = {}
    done: dict[str, str | None] = {}
    if reader.takes("|"):
        given, done = reader.conditions()
    reader.require(")")
    if text[reader.at :].strip():
        reader.refuse("nothing may follow the closing parenthesis")
    twice = [name for name in asked if name in given or name in done]
    if twice:
        raise UserError(f"{twice[0]!r} is both asked for and given in {text!r}; remove it from one side")
    seen_and_set = [name for name in given if name in done]
    if seen_and_set:
        raise UserError(f"{seen_and_set[0]!r} is both seen and set by do() in {text!r}; leave out one")
    if len({state is None for state in asked.values()}) > 1:
        raise UserError(
            f"{text!r} gives a state to some of the variables asked for; give one to each of them, or to none"
        )
    stated = ({name: str(state) for name, state in findings.items()} for findings in (given, done))
    return Question(asked, *stated)


def parse_findings(text: str) -> dict[str, str]:
    """Parse smoke=yes, xray=abnormal."""
    reader = _Reader(text)
    found = reader.findings(stated=True) if text.strip() else {}
    if text[reader.at :].strip():
        reader.refuse("separate findings by commas")
    return {name: str(state) for name, state in found.items()}


def parse_edges(written: list[str] | None, option: str) -> list[tuple[str, str]]:
    """Parse smoke->lung, or smoke → lung."""
    edges = []
    for text in written or ():
        ends = [end.strip() for end in re.split(r"->|→", text)]
        if len(ends) != 2 or not all(ends):
            raise UserError(f"{option} {text!r} is no edge; write it as parent->child")
        edges.append((ends[0], ends[1]))
    return edges


def parse_tiers(text: str) -> list[list[str]] | None:
    """Parse age,sex;smoke;lung,xray; None for an empty text."""
    tiers = [[name.strip() for name in tier.split(",") if name.strip()] for tier in text.split(";")]
    return [tier for tier in tiers if tier] or None


class _Reader:
    """A text and the position up to which it has been parsed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def findings(self, stated: bool) -> dict[str, str | None]:
        """Parse names, each with a state, which is optional unless `stated`."""
        found: dict[str, str | None] = {}
        while True:
            self.finding(found, stated)
            if not self.takes(","):
                return found

    def finding(self, found: dict[str, str | None], stated: bool) -> None:
        """Parse one name with its state, and add it to those found."""
        name = self.word("name a variable")
        if name in found:
            self.refuse(f"{name!r} occurs twice")
        found[name] = self.word("name a state") if self.takes("=") else None
        if stated and found[name] is None:
            self.refuse(f"give the state of {name!r}: {name}=…")

    def conditions(self) -> tuple[dict[str, str | None], dict[str, str | None]]:
        """Parse findings and interventions: a=yes, do(b=no, c=yes)."""
        given: dict[str, str | None] = {}
        done: dict[str, str | None] = {}
        while True:
            if _DO.match(self.text, self.at):
                self.at = self.text.index("(", self.at) + 1
                while True:
                    self.finding(done, stated=True)
                    if not self.takes(","):
                        break
                self.require(")")
            else:
                self.finding(given, stated=True)
            if not self.takes(","):
                return given, done

    def word(self, wanted: str) -> str:
        match = _WORD.match(self.text, self.at)
        if match is None:
            self.refuse(wanted)
        assert match is not None
        self.at = match.end()
        return next(part for part in match.groups() if part is not None)

    def takes(self, sign: str) -> bool:
        """Skip a sign if it comes next; return whether it did."""
        rest = self.text[self.at :]
        if not rest.lstrip().startswith(sign):
            return False
        self.at += len(rest) - len(rest.lstrip()) + len(sign)
        return True

    def require(self, sign: str) -> None:
        if not self.takes(sign):
            self.refuse(f"{sign} is missing")

    def refuse(self, wanted: str) -> None:
        done, rest = self.text[: self.at], self.text[self.at :]
        raise UserError(f"cannot read the expression after {done!r}, at {rest!r}: {wanted}; as in P(lung | smoke=yes)")
