"""Knowledge of the cells of rows, as likelihoods, and the distribution of each cell given the others by tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import xlogy

from posteriori.densities import TabularDensity, ungrouped
from posteriori.model.generative_model import GenerativeModel
from posteriori.support.checks import check_numbers, require
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

    Cost: O(n Z Σ_j K_j) as arrays of n Z K numbers, and O(Z K_j K_{parent(j)}) more for each cell that is not known.

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

    @property
    def n_parameters(self) -> int:
        """The number of free parameters: of p(z), and of each line of a table one less than its codes."""
        of_lines = (math.prod(one.shape[:-1]) * (one.shape[-1] - 1) for one in self.tables)
        return int(len(self.log_prior) - 1 + sum(of_lines))

    def check(self) -> None:
        """Raise ValueError unless the tables, which may come from a file, are a forest of distributions."""
        d, n_components = len(self.columns), len(self.log_prior)
        check_numbers("log p(z)", self.log_prior, (n_components,), -np.inf, 1e-6)
        require(len(self.parents) == len(self.tables) == d, "there is not one parent and one table for each column")
        require(all(-1 <= parent < j for j, parent in enumerate(self.parents)), "a column comes before its parent")
        for parent, one in zip(self.parents, self.tables, strict=True):
            above = () if parent < 0 else (self.tables[parent].shape[-1],)
            require(one.ndim == 2 + len(above) and one.shape[-1] > 0, "a table has a wrong number of axes")
            check_numbers("a table", one, (n_components, *above, one.shape[-1]), 0.0, 1.0 + 1e-6)
            require(np.allclose(one.sum(axis=-1), 1.0), "a line of a table does not sum to 1")

    def with_floor(self, floor: float) -> Tables:
        """Return the tables mixed with a little of equal probabilities, so that no evidence is impossible."""
        return replace(self, tables=tuple((1.0 - floor) * one + floor / one.shape[-1] for one in self.tables))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each column."""
        return tuple(table.shape[-1] for table in self.tables)

    def edge_information(self) -> list[float]:
        """Return the mutual information of each column and its parent in nats, of one component; 0 of a root."""
        alone: list[Array] = []
        found = []
        for parent, table in zip(self.parents, self.tables, strict=True):
            above = np.ones(1) if parent < 0 else alone[parent]
            lines = table[:1] if parent < 0 else table[0]
            alone.append(above @ lines)
            ratio = lines / np.maximum(alone[-1], _TINY)
            found.append(float(above @ xlogy(lines, np.maximum(ratio, _TINY)).sum(axis=1)))
        return found

    def rows_per_block(self) -> int:
        """Return how many rows have messages that fit into the cache together."""
        return max(1, _BLOCK // (len(self.log_prior) * max(sum(self.sizes), 1)))

    def likelihoods(self, batch: Batch) -> list[Array]:
        """Return the likelihoods of what is known of rows: for each column, (n, K)."""
        schema, found = batch.schema, []
        for j, size in zip(self.columns, self.sizes, strict=True):
            found.append(likelihood_of_codes(batch.codes.values[:, schema.coded.index(j)].astype(np.int64), size))
        return found

    def beliefs(self, likelihoods: Sequence[Array]) -> Beliefs:
        """Return the beliefs that follow from the likelihoods of rows: the messages towards the roots."""
        n, n_components = len(likelihoods[0]), len(self.log_prior)
        only = [_only_code(one) for one in likelihoods]
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
            upward[j] = _scaled(_summed(own, only[j], table.transpose(0, 2, 1)), scale[j])
            joined = _scaled(below[parent] * upward[j].values, scale[parent] + upward[j].log_scale)
            below[parent], scale[parent] = joined.values, joined.log_scale
        gathered = [Message(values, of_values) for values, of_values in zip(below, scale, strict=True)]
        return Beliefs(self, list(likelihoods), gathered, upward, only)


@dataclass(frozen=True)
class Message:
    """Numbers of the codes of a column, (n, Z, K), up to a factor, whose log is kept apart, (n, Z)."""

    values: Array
    log_scale: Array


def _only_code(likelihood: Array) -> Array:
    """Return the one code that each row can have, (n,); −1 where it can have several."""
    possible = likelihood > 0
    return np.where(possible.sum(axis=1) == 1, possible.argmax(axis=1), -1)


def _summed(values: Array, only: Array, table: Array) -> Array:
    """Return Σ_k v(z, k)·table(z, k, l) of rows, (n, Z, L), of which some have one code k only."""
    found = np.empty((len(values), len(table), table.shape[2]))
    several = np.flatnonzero(only < 0)
    if len(several):
        found[several] = np.matmul(values[several].transpose(1, 0, 2), table).transpose(1, 0, 2)
    one = np.flatnonzero(only >= 0)
    if len(one):
        code, lines = only[one], np.ascontiguousarray(table.transpose(1, 0, 2))
        found[one] = lines[code] * values[one, :, code][..., np.newaxis]
    return found


def _scaled(values: Array, log_scale: Array) -> Message:
    """Return a message whose largest number is 1."""
    peak = np.maximum(values.max(axis=2, keepdims=True), _TINY)
    return Message(values / peak, log_scale + np.log(peak[..., 0]))


def likelihood_of_codes(codes: Array, size: int) -> Array:
    """Return the likelihoods of known cells, from 1, and of unknown ones, whose code is 0, (n, K)."""
    found: Array = (codes[:, np.newaxis] == np.arange(1, size + 1)).astype(np.float64)
    found[codes == 0] = 1.0
    return found


@dataclass(frozen=True)
class Beliefs:
    """Knowledge of rows, in messages towards the roots."""

    tables: Tables
    likelihoods: list[Array]  # of each column, (n, K)
    below: list[Message]  # of each column: the product of the messages of its children
    upward: list[Message]  # of each column: its message to its parent; of a root p(all that is known in its tree | z)
    only: list[Array]  # of each column, (n,): the one code that is possible, or −1

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
        found = []
        for one, below in zip(self._downward, self.below, strict=True):
            found.append(self._mixed(one.values * below.values, one.log_scale + below.log_scale))
        return found

    @cached_property
    def _downward(self) -> list[Message]:
        """Of each column, p(x_j, what is known outside of its subtree | z)."""
        tables, found = self.tables, list[Message]()
        for j, (parent, table) in enumerate(zip(tables.parents, tables.tables, strict=True)):
            if parent < 0:
                others = [k for k, above in enumerate(tables.parents) if above < 0 and k != j]
                rest = np.sum([self._of_tree(k) for k in others], axis=0) if others else 0.0
                shape = self.below[j].values.shape
                found.append(Message(np.broadcast_to(table, shape), np.broadcast_to(rest, shape[:2])))
            else:
                reached = self._reached(j, found)
                sent = _summed(reached.values, self.only[parent], table)
                found.append(_scaled(sent, reached.log_scale))
        return found

    def _reached(self, j: int, downward: Sequence[Message]) -> Message:
        """Return p(the parent of a column, all that is known outside of the subtree of this column | z)."""
        parent = self.tables.parents[j]
        siblings, above = self._siblings(parent, j), downward[parent]
        values = above.values * self.likelihoods[parent][:, np.newaxis] * siblings.values
        return Message(values, above.log_scale + siblings.log_scale)

    def expected(self, weight: Array) -> tuple[Array, list[Array], list[Array]]:
        """Return p(z | what is known) of rows, and sums of p(z, x_j | …) and p(z, x_parent, x_j | …) where unknown.

        Rows that know a column, or it and its parent, do not count in its sums.

        Parameters
        ----------
        weight : ndarray (n,)
            Of the rows.

        Returns
        -------
        share : ndarray (n, Z)
        of_codes : list of ndarray (Z, K)
        of_pairs : list of ndarray (Z, K of the parent, K)
            Empty of a root.
        """
        share = np.exp(self.log_joint - self.log_evidence[:, np.newaxis])
        weighted, of_codes, of_pairs = share * weight[:, np.newaxis], list[Array](), list[Array]()
        for j, (parent, table) in enumerate(zip(self.tables.parents, self.tables.tables, strict=True)):
            rows = np.flatnonzero(self.only[j] < 0)
            of_row = self._downward[j].values[rows] * (self.likelihoods[j][:, np.newaxis] * self.below[j].values)[rows]
            of_codes.append(np.einsum("nz,nzk->zk", weighted[rows] / np.maximum(of_row.sum(axis=2), _TINY), of_row))
            if parent < 0:
                of_pairs.append(np.empty((0, 0, 0)))
                continue
            rows = np.flatnonzero((self.only[j] < 0) | (self.only[parent] < 0))
            own = self.likelihoods[j][rows, np.newaxis] * self.below[j].values[rows]
            reached = self._reached(j, self._downward).values[rows]
            sent = _summed(reached, self.only[parent][rows], table)
            total = np.maximum(np.einsum("nzl,nzl->nz", sent, own), _TINY)
            lines = (reached * (weighted[rows] / total)[..., np.newaxis]).transpose(1, 2, 0)
            of_pairs.append(np.matmul(lines, own.transpose(1, 0, 2)) * table)
        return share, of_codes, of_pairs

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

    def draw(self, rng: np.random.Generator, rows: Array) -> list[Array]:
        """Draw the code, from 0 on, of every column given what is known of rows, (n,), which may repeat; each (n,)."""
        tables = self.tables
        component = _choose(np.exp(self.log_joint - self.log_joint.max(axis=1, keepdims=True))[rows], rng)
        codes: list[Array] = []
        for j, (parent, table) in enumerate(zip(tables.parents, tables.tables, strict=True)):
            given = table[component] if parent < 0 else table[component, codes[parent]]
            codes.append(_choose(given * self.likelihoods[j][rows] * self.below[j].values[rows, component], rng))
        return codes


def _choose(weight: Array, rng: np.random.Generator) -> Array:
    """Draw a place for each row, in proportion to weights (n, K)."""
    reached = np.cumsum(weight, axis=1)
    return np.asarray((rng.random(len(weight))[:, np.newaxis] * reached[:, -1:] >= reached).sum(axis=1))
