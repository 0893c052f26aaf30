"""The law of a table: a mixture of forests of tables over the codes of all columns, and what codes stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.joint.counting import CountedRows, GivenRows
from posteriori.joint.findings import parts_of
from posteriori.joint.grids import NumberGrid, answer_of
from posteriori.model.answer import Answer
from posteriori.model.beliefs import Beliefs, Tables, likelihood_of_codes
from posteriori.support.checks import check_equal, require
from posteriori.support.suggestions import closest
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema
from posteriori.tables.arrays import write_column

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Law:
    r"""p(x) = Σ_m w_m p_m(x), of forests of tables over the same codes.

    Given what is known, a member counts by how probable it makes that: p(m | known) ∝ w_m p_m(known). So all marginals
    and conditionals are those of one distribution.
    """

    schema: Schema  # with cut points
    members: tuple[Tables, ...]
    weight: Array  # (M,)
    grids: Mapping[int, NumberGrid]  # of each column of numbers, by its position: what its codes stand for
    counted: CountedRows | None = None  # training rows, which questions count

    @cached_property
    def log_weight(self) -> Array:
        """Log w_m, (M,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.weight))

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The columns of the schema that have tables, ascending."""
        return tuple(sorted(self.members[0].columns))

    @property
    def names(self) -> list[str]:
        """The names of the columns that have tables."""
        return [self.schema.names[j] for j in self.columns]

    def place(self, name: str) -> int:
        """Return the position of a column in the schema; ValueError if it has no tables."""
        ignored = {one.name: one.reason for one in self.schema.columns if one.is_ignored}
        if name in ignored:
            raise ValueError(f"the model ignores the column {name!r}: {ignored[name]}; choose another column")
        if name not in self.names:
            raise ValueError(f"there is no column {name!r}; {closest(str(name), self.names)}")
        return self.columns[self.names.index(name)]

    def categories(self, j: int) -> list[Any]:
        """Return the categories of a column, in the order of their codes."""
        found: list[Any] = write_column(self.schema.columns[j]).tolist()
        return found

    def check(self) -> None:
        """Raise ValueError unless the members describe the same columns."""
        check_equal("the number of weights", len(self.weight), len(self.members))
        require(all(sorted(one.columns) == list(self.columns) for one in self.members), "the members differ in columns")

    @property
    def sizes(self) -> dict[int, int]:
        """The number of codes of each column."""
        return dict(zip(self.members[0].columns, self.members[0].sizes, strict=True))

    def likelihoods(self, batch: Batch) -> dict[int, Array]:
        """Return the likelihoods of what is known of rows: of each column, (n, K)."""
        first = self.members[0]
        return dict(zip(first.columns, first.likelihoods(batch), strict=True))

    def believe(self, likelihoods: Mapping[int, Array]) -> LawBeliefs:
        """Return the beliefs that follow from the likelihoods of rows."""
        of_members = [one.beliefs([likelihoods[j] for j in one.columns]) for one in self.members]
        log_joint = np.stack([one.log_evidence for one in of_members], axis=1) + self.log_weight
        return LawBeliefs(self, likelihoods, of_members, log_joint)

    def counts(self, given: Mapping[str, Any], asked: Mapping[int, Array | None]) -> GivenRows | None:
        """Return the training rows that are as given, with those that know some columns; None if none are kept."""
        return None if self.counted is None else self.counted.given(parts_of(self, given), asked)

    def of_counted(self, rows: Array) -> dict[int, Array]:
        """Return the likelihoods of what some counted rows know, by their places: of each column, (m, K)."""
        assert self.counted is not None
        found = {}
        for j, size in self.sizes.items():
            codes = self.counted.codes(j)[rows]
            bins = np.concatenate([[0], self.grids[j].code + 1])[codes] if j in self.grids else codes
            found[j] = likelihood_of_codes(bins, size)
        return found

    def in_blocks(self, n: int, of_rows: Callable[[slice], Any]) -> list[Any]:
        """Return the results of a function of parts of rows that fit into the cache."""
        size = min(one.rows_per_block() for one in self.members)
        return [of_rows(slice(start, min(start + size, n))) for start in range(0, n, size)]

    def of_others(self, batch: Batch, column: int) -> Array:
        """Return p(x_j | the other cells) of the codes of a column in rows, (n, K)."""

        def of_rows(rows: slice) -> Array:
            likelihoods = self.likelihoods(batch.rows(rows))
            likelihoods[column][:] = 1.0  # so that not even the rounding depends on the cell
            return self.believe(likelihoods).given_others()[column]

        return np.concatenate(self.in_blocks(len(batch), of_rows))

    def answer(self, column: int, probability: Array) -> Answer:
        """Return the probabilities of the codes of a column as an answer: categories, or cells of numbers."""
        return answer_of(self.schema.columns[column], probability, self.grids.get(column))


@dataclass(frozen=True)
class LawBeliefs:
    """The knowledge of rows, in each member."""

    law: Law
    likelihoods: Mapping[int, Array]
    members: Sequence[Beliefs]
    log_joint: Array  # (n, M): log w_m p_m(known)

    @property
    def log_evidence(self) -> Array:
        """Log p(known) in nats, (n,), of codes."""
        return np.asarray(np.logaddexp.reduce(self.log_joint, axis=1))

    def given_others(self) -> dict[int, Array]:
        """Return for each column p(x_j | what is known of the other columns), (n, K)."""
        each = [dict(zip(one.tables.columns, one.given_others(), strict=True)) for one in self.members]
        found = {}
        for j in self.law.columns:
            log_weight = np.stack([one[j][1] for one in each], axis=1) + self.law.log_weight
            peak = np.maximum(log_weight.max(axis=1, keepdims=True), np.log(_TINY) * len(self.law.columns))
            weight = np.exp(log_weight - peak)
            mixed = np.einsum("nm,nmk->nk", weight, np.stack([one[j][0] for one in each], axis=1))
            found[j] = mixed / np.maximum(mixed.sum(axis=1, keepdims=True), _TINY)
        return found

    def marginals(self) -> dict[int, Array]:
        """Return for each column p(x_j | all that is known), (n, K)."""
        found = {j: given * self.likelihoods[j] for j, given in self.given_others().items()}
        return {j: one / np.maximum(one.sum(axis=1, keepdims=True), _TINY) for j, one in found.items()}

    def draw(self, rng: np.random.Generator, times: int = 1) -> dict[int, Array]:
        """Draw the code, from 0 on, of every column given what is known of each row, (n · times,) for each column."""
        rows = np.repeat(np.arange(len(self.log_joint)), times)
        share = np.exp(self.log_joint - self.log_joint.max(axis=1, keepdims=True))[rows]
        reached = np.cumsum(share, axis=1)
        member = (rng.random(len(share))[:, np.newaxis] * reached[:, -1:] >= reached).sum(axis=1)
        codes = {j: np.zeros(len(share), np.int64) for j in self.law.columns}
        for m, one in enumerate(self.members):
            of_member = member == m
            if of_member.any():
                for j, drawn in zip(one.tables.columns, one.draw(rng, rows[of_member]), strict=True):
                    codes[j][of_member] = drawn
        return codes
