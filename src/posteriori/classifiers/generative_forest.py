"""Generative forest: an ensemble of randomised trees, each a joint distribution."""

from __future__ import annotations

from dataclasses import field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_scalar
from sklearn.utils._param_validation import Interval, StrOptions

from posteriori.classifiers.dependence import MISSING, dependence_blocks
from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.classifiers.parameters import COLUMN_CONSTRAINTS, PRIOR_CONSTRAINTS, declares_parameters
from posteriori.densities import RandomTrees, SummedTrees
from posteriori.explain.tree_outline import TreeOutline, outline_of_tree
from posteriori.model import Block
from posteriori.support.checks import generator
from posteriori.support.typing import Array
from posteriori.tables import Schema


@declares_parameters
class GenerativeForest(GenerativeEstimator):
    r"""Forest of randomised trees, each a joint distribution over the classes and the columns.

    .. math:: p(y \mid x) \propto p(y) \prod_t \Big(\frac{p_t(x \mid y)}{p_t(x)}\Big)^{1/T}, \qquad
              p_t(x, y) = \sum_l p(l) \, p(y \mid l) \prod_j p(x_j \mid l)

    It models rules over several columns, which no model of pairs of columns can. A leaf l of a tree is a cell of the
    space of rows; p(y | l) is backed off to every node above it. Continuous columns are cut into bins.

    Parameters
    ----------
    n_trees : int or "auto", default "auto"
        Number of trees. "auto": 100 up to 10,000 rows; for more rows 1,000,000 divided by their number, at least 25;
        with ``splits="mixed"`` half as many again.
    splits : {"random", "best", "mixed"}, default "random"
        How a node is split. Each node tries some columns, and takes the split with the highest information gain.
        "random" draws one cut per column (extremely randomised trees); "best" takes the best cut of each; "mixed" grows
        every second tree with the best cuts, and the others with random ones.
    combine : {"conditional", "geometric", "arithmetic", "sum"}, default "conditional"
        The mean over the trees of p_t(y | x): geometric, geometric with all p(y | l) changed from the back-off on, so
        that the trees together predict the classes of the training rows best ("conditional", see Notes), or arithmetic.
        With "arithmetic" predictions have no explanation. "sum" grows other trees, one after the other on what those
        before it leave (gradient boosting, see Notes); it takes none of
        the parameters from `splits` to `strength`.
    columns_per_split : int, optional
        Columns that a node tries. Default: √d for the best cuts; d/2 for random cuts, at most max(10, √d).
    min_weight : float, default 2.0
        The least weight of the rows of a node that is split. It is raised if the leaves of all trees would hold more
        than about 16 million probabilities.
    strength : float, optional
        Pseudo-rows s of the back-off, p(y | node) = (n_y + s·p(y | parent)) / (n + s). Default: one for nodes of 1, 4,
        16, … rows each, those of the greatest likelihood of the rows in the trees that did not see them, times one
        factor of inner nodes and one of leaves, which have the lowest log-loss of the mean of these trees.
    bins : as in `TreeAugmentedNaiveBayes`, default 255
    random_state : int, RandomState, Generator or None, default 0
        Seed of the trees.
    .. shared:: priors, columns, missing, n_jobs

    Attributes
    ----------
    classes_ : ndarray (C,)
    strength_ : float or tuple of tuple of float
        The pseudo-rows of the back-off as given; or as learned, of inner nodes and of leaves of 1, 4, 16, … rows.
    n_leaves_ : int
        Number of leaves of all trees.
    information_gain_ : ndarray (d,)
        Information about the class that the splits of each column gain, in nats per row: the mean over the trees of
        Σ n_node/n·I(side; y | node), from the training rows. `importance_` measures held-out rows instead.
    .. shared:: class_prior_, n_parameters_, feature_names_in_

    Notes
    -----
    A split of a categorical column sends a set of categories to each side: categories are ordered by a random
    projection of their class distribution (by p(y | category) for two classes) and cut in this order.

    Rows are dealt to five folds. A tree grows on the rows outside one of them, and the rows of this fold serve to
    choose `strength`. The leaves of the final trees count all rows. A row of weight k counts as k rows in splits and
    leaves, but it is in one fold, where k equal rows may be in several. At a node of more than 4,096 rows, so many of
    them choose the split: every k-th one within its class. There weights choose other splits than repeated rows.

    In a leaf, p(x_j | l) is the distribution of the column in all rows, truncated to the leaf. So a tree has exact
    marginals: a row without the cell of a split goes down both sides, with the shares of the training rows, and the
    present cells of other splits weigh the leaves by share / p(x_j on this side | x_j in the cell of the node). A row
    without any cell has the class prior. A category that a node has not seen in growth goes to a side at random,
    drawn once with the shares of the others; one that is new since then counts as missing. In growth, a row without the
    cell of a split goes to one side at random; in the leaves it counts on both, with the shares.

    `predict_joint_log_proba`, `score_samples` and `sample` are those of one joint distribution, the mixture
    p(x, y) = p(y)·(1/T)·Σ_t p_t(x | y). It sums to 1, its classes have the prior, and missing cells are summed out.
    `predict_proba` is not its posterior, except for ``n_trees=1``: it combines the trees by another mean (`combine`),
    which predicts better, and which is not the marginal of one joint distribution if cells are missing. The terms of
    `explain` add up to the posterior, not to log p(x, y).

    With ``combine="conditional"``, the p(y | l) of all trees that leave out the same fold are changed together, so
    that their mean predicts the classes of the rows outside this fold best. This starts from the back-off and is
    shrunk to it, so that a tree is a joint distribution as before, whose p(y | l) are no longer shares of classes. A
    row sees each leaf without itself, and the steps end where the rows in the folds are predicted best, so that the
    back-off is kept where it is better. Lower log-loss is the gain; that the tables of leaves can no longer be counted
    by hand is the price.

    With ``combine="sum"``, p(y | x) ∝ p(y) exp Σ_t v_t(x), where each leaf has a shrunken Newton step of every class;
    "auto" trees end where the rows of five folds are predicted best. This is no joint distribution: there is no p(x),
    and no row can be drawn. It is what the pool grows on what its other members leave ("residual trees").

    Explanations are exact sums along the paths of all trees. A split adds the change of log p(y | node) to its column.
    If the cell is missing, the parts of both sides are weighed by the mean of their weight along the straight line from
    the values without cells to those with them, which has a closed form (Aumann & Shapley 1974).

    `partial_fit`, `unlearn` and `merge` change the weights in the leaves, exactly, and keep the splits, `strength` and
    the changes of p(y | l).
    Trees grow on at most 200,000 rows (fewer with more than 167 columns), those with the smallest hashes of their
    cells; the leaves count all rows. So a table outside memory takes one pass, or two beyond this limit.

    `to_sql` writes a small forest, with missing cells summed out exactly: its edges and leaves are tables, and a
    SELECT joins them with the rows, level by level.

    .. shared:: informative missingness

    References
    ----------
    Correia, Peharz & de Campos, Joints in random forests, NeurIPS 2020. Geurts, Ernst & Wehenkel, Extremely randomized
    trees, Machine Learning 63 (2006). Aumann & Shapley, Values of non-atomic games (1974). Ren, Cao, Wei & Sun, Global
    refinement of random forest, CVPR 2015. Zaidi et al., Efficient parameter learning of Bayesian network classifiers,
    Machine Learning 106 (2017).

    Examples
    --------
    >>> import posteriori as po
    >>> X = [["a", "u"], ["b", "v"], ["a", "v"], ["b", "u"]] * 10
    >>> y = ["same", "same", "other", "other"] * 10
    >>> po.GenerativeForest(n_trees=20).fit(X, y).predict([["a", "u"], ["b", "u"]])
    array(['same', 'other'], dtype='<U5')
    """

    n_trees: int | str = field(default="auto", kw_only=False)
    splits: str = "random"
    combine: str = "conditional"
    columns_per_split: int | None = None
    min_weight: float = 2.0
    strength: float | None = None
    bins: Any = 255
    random_state: Any = 0
    missing: str = "at_random"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_trees": [StrOptions({"auto"}), Interval(Integral, 1, 10_000, closed="both")],
        "splits": [StrOptions({"random", "best", "mixed"})],
        "combine": [StrOptions({"conditional", "geometric", "arithmetic", "sum"})],
        "columns_per_split": [None, Interval(Integral, 1, None, closed="left")],
        "min_weight": [Interval(Real, 0, None, closed="left")],
        "strength": [None, Interval(Real, 1e-6, 1e6, closed="both")],
        "bins": [Interval(Integral, 2, 60_000, closed="both"), StrOptions({"mdlp"}), "array-like"],
        "random_state": ["random_state", np.random.Generator],
        **MISSING,
        **PRIOR_CONSTRAINTS,
        **COLUMN_CONSTRAINTS,
    }

    def _blocks(self, schema: Schema) -> tuple[Block, ...]:
        binned = schema.of_kind("continuous")
        ordered = tuple(position for position, j in enumerate(schema.dense) if j in binned)
        n_trees = None if isinstance(self.n_trees, str) else int(self.n_trees)
        seed, rank = int(generator(self.random_state).integers(2**31)), schema.rank_by_name(schema.dense)
        if self.combine == "sum":
            self._require_defaults("splits", "columns_per_split", "min_weight", "strength")
            summed = SummedTrees(ordered, n_trees, seed, n_jobs=self.n_jobs, rank=rank)
            return dependence_blocks(schema, summed, self.bins, grouped=False, missing=self.missing)
        trees = RandomTrees(
            ordered,
            n_trees,
            self.splits,  # type: ignore[arg-type]
            "arithmetic" if self.combine == "arithmetic" else "geometric",
            None if self.columns_per_split is None else int(self.columns_per_split),
            float(self.min_weight),
            seed,
            None if self.strength is None else float(self.strength),
            "conditional" if self.combine == "conditional" else None,
            n_jobs=self.n_jobs,
            rank=rank,
        )
        return dependence_blocks(schema, trees, self.bins, grouped=False, missing=self.missing)

    def _require_defaults(self, *names: str) -> None:
        """Raise ValueError if a parameter is given that a sum of trees does not have."""
        for name in names:
            if getattr(self, name) != getattr(type(self)(), name):
                raise ValueError(f'{name} is of trees that are grown by themselves; leave it out with combine="sum"')

    @property
    def _trees(self) -> RandomTrees:
        density = self.model_.blocks[0].density
        if not isinstance(density, RandomTrees):
            raise AttributeError("a sum of trees has no strength_ and no information_gain_; use another combine")
        return density

    @property
    def strength_(self) -> float | tuple[tuple[float, ...], ...]:
        """The pseudo-rows of the back-off as given; or as learned, of inner nodes and of leaves by their weight."""
        return self._trees.of_weights or float(self._trees.strength or 0.0)

    @property
    def n_leaves_(self) -> int:
        """Number of leaves of all trees."""
        return int(self.model_.parameters[0].trees.n_leaves)

    def outline(self, tree: int = 0, *, max_depth: int = 3) -> TreeOutline:
        """Return one tree as an outline, which prints as text with one node per line.

        Parameters
        ----------
        tree : int, default 0
            Which tree, from 0 to `n_trees` − 1.
        max_depth : int, default 3
            Levels below the root; deeper nodes are folded.

        Returns
        -------
        TreeOutline

        Raises
        ------
        ValueError
            There is no such tree, or the depth is negative.
        TypeError
            The tree or the depth is no integer.

        Examples
        --------
        >>> import posteriori as po
        >>> X, y = [["red", 1], ["blue", 1]] * 20, ["stop", "go"] * 20
        >>> print(po.GenerativeForest(n_trees=5, strength=1.0).fit(X, y).outline())
        tree 0 of 5: 2 leaves
        all rows     100%  go 0.50, stop 0.50
        ├ x0 = blue   50%  go 0.99, stop 0.01
        └ x0 = red    50%  stop 0.99, go 0.01
        """
        self._check_fitted()
        check_scalar(tree, "tree", Integral, min_val=0, max_val=self.model_.parameters[0].trees.n_trees - 1)
        check_scalar(max_depth, "max_depth", Integral, min_val=0)
        model, block = self.model_, self.model_.blocks[0]
        columns = [model.schema.columns[j] for j in block.columns]
        return outline_of_tree(
            model.parameters[0], columns, self.classes_.tolist(), self.class_prior_, int(tree), int(max_depth)
        )

    @property
    def information_gain_(self) -> Array:
        """Information about the class that the splits of each column gain, in nats per row, (d,)."""
        statistics = self._part(self._value.statistics, "has not counted any rows")
        block = self.model_.blocks[0]
        gain = np.zeros(len(self.model_.schema.columns))
        gain[list(block.columns)] = self._trees.information_gain(statistics.blocks[0])
        return gain
