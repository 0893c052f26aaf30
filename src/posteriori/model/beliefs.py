"""Knowledge of the cells of rows, as likelihoods, and the distribution of each cell given the others by tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from posteriori.densities import TabularDensity, ungrouped
from posteriori.model.generative_model import GenerativeModel
from posteriori.support.typing import Array
from posteriori.tables import Batch, quote

_TINY = float(np.finfo(np.float64).tiny)
_BLOCK = 1 << 21  # numbers in the messages of a block of rows


class NoTablesError(ValueError):
    """A model is no tree of tables of categories and bins."""


@dataclass(frozen=True)
class Tables:
    r"""Tables along a forest: p(x, z) = p(z) Π_j p(x_j | x_{parent(j)}, z), with every column in codes.

    All that is known of a row is a likelihood λ_j of the codes of each column: 1 for the code of a known cell and 0 for
    others, 1 for all of an unknown cell, and in between for a number that is known to be in a range. Two sweeps of
    messages, to the roots and back, give for every column the distribution given what is known of the others,

    .. math:: p(x_j = k \mid \lambda_{-j}) \propto \sum_{x: x_j = k} \sum_z p(x, z) \prod_{i \ne j} \lambda_i(x_i).

    Cost: O(n Z Σ_j K_j K_{parent(j)}), as arrays of n Z K numbers.

    References
    ----------
    Pearl, Probabilistic Reasoning in Intelligent Systems (1988), chapter 4.
    """

    log_prior: Array  # (Z,)
    columns: tuple[int, ...]  # the columns of the schema that the tables describe, so that each comes after its parent
    parents: tuple[int, ...]  # of each, its position among them, or −1
    tables: tuple[Array, ...]  # of each, (Z, K) of a root, else (Z, K of the parent, K)

    @classmethod
    def of(cls, model: GenerativeModel) -> Tables:
        """Return the tables of a model.

        Raises
        ------
        NoTablesError
            A column has no table of categories or bins, or depends on more than one other column.
        """
        found: dict[int, tuple[int, Array]] = {}
        for block, parameters in zip(model.blocks, model.parameters, strict=True):
            if block.shared or block.models_missingness:
                continue
            names = quote(model.schema.names[j] for j in block.columns)
            density = block.density
            coded = all(j in model.schema.coded for j in block.columns)
            if (
                not coded
                or not isinstance(density, TabularDensity)
                or not isinstance(ungrouped(density), TabularDensity)
            ):
                raise NoTablesError(f"{names} are no tables of categories or bins")
            for position, (above, table) in enumerate(density.conditional_tables(parameters)):
                if model.schema.columns[block.columns[position]].has_no_kind or not table.shape[-1]:
                    continue
                if len(above) > 1:
                    raise NoTablesError(f"{model.schema.names[block.columns[position]]!r} depends on several columns")
                parent = block.columns[above[0]] if above else -1
                found[block.columns[position]] = (parent, np.exp(table))
        order: list[int] = []
        while len(order) < len(found):
            order += [j for j, (parent, _) in found.items() if j not in order and (parent < 0 or parent in order)]
        place = {j: k for k, j in enumerate(order)} | {-1: -1}
        parents = tuple(place[found[j][0]] for j in order)
        return cls(model.log_prior, tuple(order), parents, tuple(found[j][1] for j in order))

    def with_floor(self, floor: float) -> Tables:
        """Return the tables mixed with a little of equal probabilities, so that no evidence is impossible."""
        return replace(self, tables=tuple((1.0 - floor) * one + floor / one.shape[-1] for one in self.tables))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each column."""
        return tuple(table.shape[-1] for table in self.tables)

    def rows_per_block(self) -> int:
        """Return how many rows have messages that fit into the cache together."""
        return max(1, _BLOCK // (len(self.log_prior) * max(sum(self.sizes), 1)))

    def likelihoods(self, batch: Batch) -> list[Array]:
        """Return the likelihoods of what is known of rows: for each column, (n, K)."""
        schema, found = batch.schema, []
        for j, size in zip(self.columns, self.sizes, strict=True):
            code = batch.codes.values[:, schema.coded.index(j)].astype(np.int64)
            one = (code[:, np.newaxis] == np.arange(1, size + 1)).astype(np.float64)
            one[code == 0] = 1.0
            found.append(one)
        return found

    def beliefs(self, likelihoods: Sequence[Array]) -> Beliefs:
        """Return the beliefs that follow from the likelihoods of rows: the messages towards the roots."""
        n, n_components = len(likelihoods[0]), len(self.log_prior)
        below: list[Array] = [np.ones((n, n_components, size)) for size in self.sizes]
        scale: list[Array] = [np.zeros((n, n_components)) for _ in self.sizes]
        upward: list[Message] = [Message(np.empty(0), np.empty(0))] * len(below)
        for j in reversed(range(len(below))):
            parent, table = self.parents[j], self.tables[j]
            own = below[j] * likelihoods[j][:, np.newaxis]
            if parent < 0:
                total = np.einsum("nzk,zk->nz", own, table)[..., np.newaxis]
                upward[j] = _scaled(total, scale[j])
                continue
            sent = np.matmul(own.transpose(1, 0, 2), table.transpose(0, 2, 1)).transpose(1, 0, 2)
            upward[j] = _scaled(sent, scale[j])
            joined = _scaled(below[parent] * upward[j].values, scale[parent] + upward[j].log_scale)
            below[parent], scale[parent] = joined.values, joined.log_scale
        gathered = [Message(values, of_values) for values, of_values in zip(below, scale, strict=True)]
        return Beliefs(self, list(likelihoods), gathered, upward)


@dataclass(frozen=True)
class Message:
    """Numbers of the codes of a column, (n, Z, K), up to a factor, whose log is kept apart, (n, Z)."""

    values: Array
    log_scale: Array


def _scaled(values: Array, log_scale: Array) -> Message:
    """Return a message whose largest number is 1."""
    peak = np.maximum(values.max(axis=2, keepdims=True), _TINY)
    return Message(values / peak, log_scale + np.log(peak[..., 0]))


@dataclass(frozen=True)
class Beliefs:
    """Knowledge of rows, in messages towards the roots."""

    tables: Tables
    likelihoods: list[Array]  # of each column, (n, K)
    below: list[Message]  # of each column: the product of the messages of its children
    upward: list[Message]  # of each column: its message to its parent; of a root p(all that is known in its tree | z)

    @cached_property
    def log_joint(self) -> Array:
        """Log p(z, what is known) in nats, (n, Z)."""
        each = [self._of_tree(j) for j, parent in enumerate(self.tables.parents) if parent < 0]
        return np.asarray(np.sum(each, axis=0) + self.tables.log_prior)

    def _of_tree(self, root: int) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.upward[root].values[..., 0]) + self.upward[root].log_scale)

    @property
    def log_evidence(self) -> Array:
        """Log p(what is known) in nats, (n,)."""
        return np.asarray(np.logaddexp.reduce(self.log_joint, axis=1))

    def given_others(self) -> list[tuple[Array, Array]]:
        """Return for each column p(x_j | what is known of the others), (n, K), and log p(that) in nats, (n,)."""
        tables, found = self.tables, []
        downward: list[Message] = []  # of each column: p(x_j, what is known outside of its subtree | z)
        for j, (parent, table) in enumerate(zip(tables.parents, tables.tables, strict=True)):
            if parent < 0:
                others = [k for k, above in enumerate(tables.parents) if above < 0 and k != j]
                rest = np.sum([self._of_tree(k) for k in others], axis=0) if others else 0.0
                shape = self.below[j].values.shape
                downward.append(Message(np.broadcast_to(table, shape), np.broadcast_to(rest, shape[:2])))
            else:
                siblings, above = self._siblings(parent, j), downward[parent]
                reached = above.values * self.likelihoods[parent][:, np.newaxis] * siblings.values
                sent = np.matmul(reached.transpose(1, 0, 2), table).transpose(1, 0, 2)
                downward.append(_scaled(sent, above.log_scale + siblings.log_scale))
            scale = downward[j].log_scale + self.below[j].log_scale
            found.append(self._mixed(downward[j].values * self.below[j].values, scale))
        return found

    def _siblings(self, parent: int, j: int) -> Message:
        """Return the product of the messages of the children of a column but one."""
        all_of_them, own = self.below[parent], self.upward[j]
        if (own.values > 0).all():
            return Message(all_of_them.values / own.values, all_of_them.log_scale - own.log_scale)
        found = Message(np.ones_like(all_of_them.values), np.zeros_like(all_of_them.log_scale))
        for k, above in enumerate(self.tables.parents):
            if above == parent and k != j:
                found = _scaled(found.values * self.upward[k].values, found.log_scale + self.upward[k].log_scale)
        return found

    def _mixed(self, given: Array, log_scale: Array) -> tuple[Array, Array]:
        """Return the mixture over components of numbers of the codes of a column, (n, Z, K), and the log of its sum."""
        total = given.sum(axis=2)
        with np.errstate(divide="ignore"):
            log_weight = np.log(total) + log_scale + self.tables.log_prior
        log_sum = np.logaddexp.reduce(log_weight, axis=1)
        share = np.exp(log_weight - np.where(np.isneginf(log_sum), 0.0, log_sum)[:, np.newaxis])
        return np.einsum("nz,nzk->nk", share / np.maximum(total, _TINY), given), np.asarray(log_sum)

    def draw(self, rng: np.random.Generator) -> list[Array]:
        """Draw the code, from 0 on, of every column of rows given what is known, each (n,)."""
        tables, rows = self.tables, np.arange(len(self.log_joint))
        component = _choose(np.exp(self.log_joint - self.log_joint.max(axis=1, keepdims=True)), rng)
        codes: list[Array] = []
        for j, (parent, table) in enumerate(zip(tables.parents, tables.tables, strict=True)):
            given = table[component] if parent < 0 else table[component, codes[parent]]
            codes.append(_choose(given * self.likelihoods[j] * self.below[j].values[rows, component], rng))
        return codes


def _choose(weight: Array, rng: np.random.Generator) -> Array:
    """Draw a place for each row, in proportion to weights (n, K)."""
    reached = np.cumsum(weight, axis=1)
    return np.asarray((rng.random(len(weight))[:, np.newaxis] * reached[:, -1:] >= reached).sum(axis=1))
