"""Questions in the notation of probability theory: P(income > 50000 | age in [30, 40], sex = F, do(job = no))."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from posteriori.joint.findings import Findable, Not, number_of_time, part_of_time
from posteriori.joint.grids import NumberGrid
from posteriori.support.suggestions import closest
from posteriori.tables import Schema
from posteriori.tables.times import DatePart

_WORD = r"""(?:"[^"]*"|'[^']*'|[^\s=<>!,|()\[\]{}"']+(?:[ \t]+[^\s=<>!,|()\[\]{}"']+)*)"""
_TOKEN = re.compile(rf"\s*(?:(?P<sign><=|>=|!=|[=<>,|()\[\]{{}}])|(?P<word>{_WORD}))")
_RANGE = re.compile(r"^(?P<low>[-+]?[\d.]*\d(?:[eE][-+]?\d+)?)?\.\.(?P<high>[-+]?\d[\d.]*(?:[eE][-+]?\d+)?)?$")
_DO = re.compile(r"\s*do\s*\(")
_EXAMPLE = "as in P(income > 50000 | age in [30, 40], sex = F)"


@dataclass(frozen=True)
class Question:
    """Columns that are asked for, each with a finding or None for all its values, and the findings that are known."""

    asked: dict[str, Any]
    given: dict[str, Any]
    done: dict[str, Any] = field(default_factory=dict)  # of a network: values that are set from outside
    everything: bool = False  # whether * stands for the columns that are asked for

    @property
    def is_event(self) -> bool:
        """Whether the answer is one probability."""
        return all(finding is not None for finding in self.asked.values())


@dataclass(frozen=True)
class Variables:
    """The variables of a network, of which single states may be known, or set by do(…)."""

    names: list[str]
    grids: Mapping[int, NumberGrid] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    schema: Schema = field(default_factory=lambda: Schema(()))

    def place(self, name: str) -> int:
        """Return the position of a variable; ValueError if there is none."""
        if name not in self.names:
            raise ValueError(f"there is no variable {name!r}; {closest(name, self.names)}")
        return self.names.index(name)


def read_question(text: str, law: Findable) -> Question:
    """Read P(a = 1, b in (u, v) | c < 12, d != x).

    A finding is =, !=, <, <=, >, >= and a value; ``in`` with a range [low, high] or values (u, v); or = and a range
    low..high. A column of dates is called by its name, and its values are dates. P(* | …) asks for all columns that are
    not known. Names and values with signs in them are quoted. Of a network a finding is = and a state, and do(d = y)
    among what is known sets a variable from outside.

    Raises
    ------
    ValueError
        The text is no such expression, or a column is asked for twice.
    """
    return _Reader(text, law).question()


def read_findings(text: str, law: Findable) -> dict[str, Any]:
    """Read findings: age = 30..40, sex = F."""
    reader = _Reader(text, law)
    found = reader.findings(stated=True)
    if reader.next() is not None:
        reader.refuse("separate findings by commas")
    return found


class _Reader:
    """The parts of an expression, and how far it has been read."""

    def __init__(self, text: str, law: Findable) -> None:
        self.text, self.law, self.at = text, law, 0
        self.names = law.names
        self.time: DatePart | None = None  # of the dates, by whose name the column is called that is read now

    def next(self) -> tuple[str, str] | None:
        """Return the kind and the text of the next part, without reading it."""
        match = _TOKEN.match(self.text, self.at)
        if match is None or not match[0].strip():
            return None
        return ("sign", match["sign"]) if match["sign"] else ("word", match["word"].strip())

    def read(self) -> str:
        match = _TOKEN.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return match[0].strip()

    def takes(self, *signs: str) -> str | None:
        found = self.next()
        return self.read() if found is not None and found[0] == "sign" and found[1] in signs else None

    def refuse(self, wanted: str) -> None:
        rest = self.text[self.at :].strip()
        place = f"at {rest!r}" if rest else "at its end"
        raise ValueError(f"cannot read {self.text!r} {place}: {wanted}, {_EXAMPLE}")

    def question(self) -> Question:
        begin = re.match(r"\s*[Pp]\s*\(", self.text)
        if begin is None:
            self.refuse("begin with P(")
        assert begin is not None
        self.at = begin.end()
        everything = self.next() == ("word", "*")
        if everything:
            self.read()
        asked = {} if everything else self.findings(stated=False)
        done: dict[str, Any] = {}
        given = self.findings(stated=True, done=done) if self.takes("|") else {}
        if self.takes(")") is None:
            self.refuse(") is missing")
        if self.next() is not None:
            self.refuse("nothing may follow the closing parenthesis")
        if everything:
            asked = {name: None for name in self.names if name not in given and name not in done}
            if not asked:
                raise ValueError(f"{self.text!r} states every column; leave one out of what is known")
        both = next((name for name in given if name in done), None)
        if both is not None:
            raise ValueError(f"{both!r} is both seen and set by do() in {self.text!r}; leave out one")
        twice = next((name for name in asked if name in given or name in done), None)
        if twice is not None:
            raise ValueError(f"{twice!r} is both asked for and given in {self.text!r}; remove it from one side")
        if len({finding is None for finding in asked.values()}) > 1:
            raise ValueError(f"{self.text!r} states some of the columns asked for; state each of them, or none")
        return Question(asked, given, done, everything)

    def findings(self, stated: bool, done: dict[str, Any] | None = None) -> dict[str, Any]:
        """Read findings until no comma follows; those within do(…) are added to `done`."""
        known: dict[str, Any] = {}
        while True:
            begin = _DO.match(self.text, self.at) if isinstance(self.law, Variables) else None
            if begin is not None and done is not None:
                self.at = begin.end()
                done.update(self.findings(stated=True))
                if self.takes(")") is None:
                    self.refuse(") is missing")
            else:
                name, rest = self.column()
                if name in known:
                    self.refuse(f"{name!r} is stated twice")
                known[name] = self.finding(name, rest)
                if stated and known[name] is None:
                    self.refuse(f"state the value of {name!r}")
            if self.takes(",") is None:
                return known

    def column(self) -> tuple[str, str]:
        """Return the name of a column, and what follows it in the same words: "in" of "age in"."""
        found = self.next()
        if found is None or found[0] != "word":
            self.refuse("name a column")
        word, self.time = self.read(), None
        if word[0] in "\"'":
            return self._known(word[1:-1]), ""
        if word in self.names:
            return word, ""
        for ending in (" not in", " in"):
            if word.endswith(ending):
                return self._known(word.removesuffix(ending).strip()), ending.strip()
        return self._known(word), ""

    def _known(self, name: str) -> str:
        if (found := part_of_time(self.law, name)) is not None:
            name, self.time = found
        self.law.place(name)
        return name

    def finding(self, name: str, rest: str) -> Any:
        following = self.next()
        if not rest and following is not None and following[0] == "word" and following[1] in ("in", "not in"):
            rest = self.read()  # after a quoted name
        if rest:
            several = self.several(name)
            return Not(several) if rest == "not in" else several
        sign = self.takes("=", "!=", "<", "<=", ">", ">=")
        if sign is None:
            return None
        if sign == "=" and self.takes("{") is not None:
            return self.values("}", name)
        value = self.value(name)
        if sign in ("=", "!="):
            return Not(value) if sign == "!=" else value
        j = self.law.place(name)
        if j not in self.law.grids:
            self.refuse(f"{name!r} holds no numbers, and has no order; use = or in")
        if not isinstance(value, float):
            self.refuse(f"{value!r} is no number")
        # Of the strict ones the end itself does not belong to the range, and it may be a point with a probability.
        return {
            "<": Not((value, None)),
            "<=": (None, value),
            ">": Not((None, value)),
            ">=": (value, None),
        }[sign]

    def several(self, name: str) -> Any:
        opening = self.takes("[", "(", "{")
        if opening is None:
            self.refuse("give a range [low, high] or values (a, b)")
        found = self.values({"[": "]", "(": ")", "{": "}"}[opening or "("], name)
        is_number = self.law.place(name) in self.law.grids
        if opening == "[" and is_number:
            if len(found) != 2:
                self.refuse("a range has two ends, [low, high]")
            return tuple(found)
        return set(found)

    def values(self, closing: str, name: str) -> list[Any]:
        found: list[Any] = []
        while True:
            found.append(self.value(name))
            if self.takes(closing) is not None:
                return found
            if self.takes(",") is None:
                self.refuse(f"{closing} is missing")

    def value(self, name: str) -> Any:
        following = self.next()
        if following is None or following[0] != "word":
            self.refuse(f"give a value of {name!r}")
        word = self.read()
        if self.time is not None:
            return self._time(word)
        if word[0] in "\"'":
            return word[1:-1]
        ends = _RANGE.match(word)
        if ends is not None and (ends["low"] or ends["high"]):
            return tuple(None if end is None else float(end) for end in (ends["low"], ends["high"]))
        if self.law.place(name) not in self.law.grids:
            return word
        try:
            number = float(word)
        except ValueError:
            return word
        return number if np.isfinite(number) else word

    def _time(self, word: str) -> Any:
        """Return a date or a range of dates as numbers of its column."""
        assert self.time is not None
        ends = [one.strip() for one in word.strip("\"'").split("..")]
        found = [number_of_time(self.time.of, self.time, one) if one else None for one in ends]
        return tuple(found) if len(found) == 2 else found[0]
