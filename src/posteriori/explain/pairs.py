"""Effects of pairs of columns on the scores beyond each column alone: their names, and their tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.model import GenerativeModel, log_marginal_of_codes
from posteriori.support.formatting import UNDEFINED, cell_text, listed
from posteriori.support.typing import Array
from posteriori.tables import Column

_MOST_NAMED = 2  # categories of a group


def names_of_pairs(names: Sequence[str], pairs: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Return a name for each pair of columns, by their positions; none is that of a column or of another pair.

    Examples
    --------
    >>> names_of_pairs(["a", "b", "a with b"], [(0, 1), (1, 2)])
    ('a with b (pair)', 'b with a with b')
    """
    taken, found = set(names), []
    for i, j in pairs:
        name = f"{names[i]} with {names[j]}"
        while name in taken:
            name += " (pair)"
        taken.add(name)
        found.append(name)
    return tuple(found)


def pair_text(first: Any, second: Any, longest: int | None = 40) -> str | None:
    """Return two cells as text, each of at most so many characters; None if one is missing."""
    if first is None or second is None:
        return None
    return f"{cell_text(first, longest)}, {cell_text(second, longest)}"


@dataclass(frozen=True)
class PairEffect:
    """Effect of a pair of columns on the score of each class, beyond the effects of the single columns.

    Attributes
    ----------
    columns : tuple of str (2)
    groups : tuple of tuple of str (2)
        What the groups of cells of each column hold: a range, a category, or some of them.
    nats : ndarray (C, G1, G2)
        In nats, for each class and pair of groups; of a pool, times the weight of the member.
    share : ndarray (G1, G2)
        The share of the rows that the model expects there. It keeps no counts of pairs, so that this is the share if
        both columns are independent given the class.

    Examples
    --------
    >>> import numpy as np
    >>> from posteriori.explain import PairEffect
    >>> nats = np.array([[[0.5, -0.5], [-0.5, 0.5]], [[-0.5, 0.5], [0.5, -0.5]]])
    >>> effect = PairEffect(("x", "y"), (("< 1", "≥ 1"), ("u", "v")), nats, np.full((2, 2), 0.25))
    >>> effect.strength, effect.log_odds(1).tolist()
    (1.0, [[-1.0, 1.0], [1.0, -1.0]])
    """

    columns: tuple[str, str]
    groups: tuple[tuple[str, ...], tuple[str, ...]]
    nats: Array
    share: Array

    @property
    def name(self) -> str:
        """Both columns, such as "carat with clarity"."""
        return " with ".join(self.columns)

    def log_odds(self, label: int) -> Array:
        """Return the contribution of the pair to the log-odds of a class against the others, (G1, G2), in nats.

        Parameters
        ----------
        label : int
            Index of the class. The others count by their geometric mean.
        """
        others = np.delete(self.nats, label, axis=0)
        return np.asarray(self.nats[label] - others.mean(axis=0) if len(others) else np.zeros(self.share.shape))

    @property
    def strengths(self) -> Array:
        """For each class the root of the mean square of `log_odds`, weighted by `share`, (C,), in nats."""
        squares = np.stack([self.log_odds(c) ** 2 for c in range(len(self.nats))])
        total = max(float(self.share.sum()), np.finfo(np.float64).tiny)
        return np.asarray(np.sqrt((squares * self.share).sum(axis=(1, 2)) / total))

    @property
    def strength(self) -> float:
        """The greatest of the `strengths`: how far the pair moves the log-odds of a class in a usual row."""
        return float(self.strengths.max())


def pair_effects(model: Any) -> list[PairEffect]:
    """Return the effects of pairs of columns on the scores of the classes, the strongest pairs first.

    Parameters
    ----------
    model : fitted classifier
        Of a pool, its members have the pairs.

    Returns
    -------
    list of PairEffect
        Empty for a model without pairs.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> po.explain.pair_effects(po.NaiveBayes().fit(load_penguins(), "species"))
    []
    """
    members: Mapping[str, Any] | None = getattr(model, "members_", None)
    each = [(model, 1.0)] if members is None else [(one, model.member_weights_[name]) for name, one in members.items()]
    found = [effect for one, weight in each if weight for effect in _effects_of(one.model_, float(weight))]
    return sorted(found, key=lambda effect: -effect.strength)


def _effects_of(model: GenerativeModel, weight: float) -> Iterator[PairEffect]:
    pairs = None if model.weights is None else model.weights.pairs
    if pairs is None:
        return
    prior = np.exp(model.log_prior)
    names: dict[int, tuple[str, ...]] = {}
    shares: dict[int, Array] = {}
    for place in np.unique(pairs.places).tolist():
        j = model.schema.coded[place]
        column, group, n_groups = model.schema.columns[j], pairs.groups(place), int(pairs.groups(place).max()) + 1
        names[place] = tuple(_group_text(column, np.flatnonzero(group == g).tolist()) for g in range(n_groups))
        given_class = np.zeros((n_groups, len(prior)))
        np.add.at(given_class, group, np.exp(log_marginal_of_codes(model, j)))
        shares[place] = given_class
    for position, (a, b) in enumerate(pairs.places.tolist()):
        columns = model.schema.names[model.schema.coded[a]], model.schema.names[model.schema.coded[b]]
        share = np.einsum("c,gc,hc->gh", prior, shares[a], shares[b])
        yield PairEffect(columns, (names[a], names[b]), weight * pairs.table(position), share)


def _group_text(column: Column, members: Sequence[int]) -> str:
    """Return the content of a group as text, from the positions of its categories or bins, which ascend."""
    if not members:
        return UNDEFINED
    first, last = members[0], members[-1]
    if not column.is_binned or last - first >= len(members):  # categories, or bins that are not neighbours
        return listed([cell_text(column.labels[k]) for k in members], _MOST_NAMED)
    cuts = column.cut_texts
    low, high = cuts[first - 1] if first else None, cuts[last] if last < len(cuts) else None
    if low is not None and high is not None:
        return f"[{low}, {high})"
    return f"≥ {low}" if low is not None else f"< {high}" if high is not None else "any"
