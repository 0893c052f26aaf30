"""The methods of a network that learn its tables from cases."""

from __future__ import annotations

from typing import Any, Self

from posteriori.networks.cases import open_cases
from posteriori.networks.family_counts import count_cases, joined
from posteriori.networks.family_moments import HybridStatistics, count_hybrid, joined_hybrid
from posteriori.networks.hybrid_learning import fit_hybrid
from posteriori.networks.learning import LearningOptions, fit_tables
from posteriori.networks.naming import States
from posteriori.networks.state import NetworkState


class TableLearning(NetworkState):
    """Methods of `BayesianNetwork`: learning of tables."""

    def fit(
        self,
        table: Any,
        *,
        alpha: Any = None,
        equivalent_sample_size: float | None = None,
        sample_weight: Any = None,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> Self:
        r"""Learn the tables of the graph from cases; they replace any earlier tables.

        .. math:: p(x_v = k \mid a) = \frac{n_{ak} + \alpha}{n_a + K \alpha}

        If cells are missing, the counts are expected counts, by EM over the junction tree: no row is dropped.

        Parameters
        ----------
        table : table (n, d)
            Any data frame whose columns have the names of the variables, in any order; or an array with one column
            per variable. Declared states stay. The states of other variables are the categories of their columns; up
            to 32 different integers count as categories too. A column of other numbers is a continuous variable, whose
            density is estimated by maximum likelihood. A hidden variable needs no column, but declared states.
        alpha : float, or mapping from str to float or array, optional
            Pseudo-counts per cell, by default 1 (Laplace); 0 is maximum likelihood. A mapping gives them per variable,
            1 for variables that it leaves out; an array has an axis for each parent and a last one for the variable.
        equivalent_sample_size : float, optional
            Replaces alpha: this many pseudo-rows, spread evenly over the cells of each table (BDeu).
        sample_weight : array-like (n,), optional
            A row of weight 2 counts as two rows.
        max_iter : int, default 200
            The most steps of EM.
        tol : float, default 1e-5
            EM stops when a step gains at most this many nats per row.
        random_state : int, RandomState, Generator or None, default 0
            Seed of the tables from which EM starts for hidden variables.
        n_jobs : int, optional
            Threads; all cores by default.

        Returns
        -------
        BayesianNetwork
            Itself, with ``statistics_``, the counts, and ``log_likelihood_trace_``, the log-likelihood of the known
            cells in nats before each step of EM (empty if no cell is missing). The trace never falls if alpha is 0;
            otherwise its sum with the log-density of the prior, Σ alpha·log p, never falls.

        Raises
        ------
        ValueError
            A column is no variable, holds a cell that is no state, or is absent; a column of measurements has a child
            of states; or EM needs more cells than max_table_size.

        Warns
        -----
        ConvergenceWarning
            EM reached max_iter; the message has the last gain.
        UserWarning
            alpha is 0 and a configuration of parents never occurs; its row of the table is uniform.

        Notes
        -----
        One pass over the rows, with one increment per row and variable. A step of EM costs as much as the marginals of
        the distinct incomplete rows.

        Examples
        --------
        >>> import polars as pl
        >>> import posteriori as po
        >>> days = pl.DataFrame({"rain": ["yes", "no", "no", "no"], "wet": ["yes", "yes", "no", "no"]})
        >>> po.BayesianNetwork([("rain", "wet")]).fit(days).cpt("wet")
        p(wet | rain)
        rain        no       yes
        no    0.600000  0.400000
        yes   0.333333  0.666667
        """
        options = LearningOptions.of(self._spec.dag.nodes, alpha, equivalent_sample_size, max_iter, tol, random_state)
        declared = self._declared_states()
        counts = self._statistics(table, declared, sample_weight, n_jobs)
        self._learn(counts, tuple(name for name in self._spec.dag.nodes if name not in declared), options, n_jobs)
        return self

    def partial_fit(self, table: Any, *, sample_weight: Any = None, n_jobs: int | None = None) -> Self:
        """Learn from more cases: the tables become those of one `fit` to all rows so far, with the same options.

        Parameters
        ----------
        table : table (n, d)
            New states extend the tables, except those of variables with declared states.
        sample_weight : array-like (n,), optional
        n_jobs : int, optional

        Returns
        -------
        BayesianNetwork
            Itself.

        Raises
        ------
        ValueError
            As in `fit`; or the tables were given or loaded, so that there are no counts to add to.
        """
        if self.statistics_ is None or self._learning_options is None:
            if self._spec.tables:
                raise ValueError(
                    "the tables of this network were given, not learned here, so that there are no counts to add to; "
                    "use fit, or give the tables as pseudo-counts: fit(…, alpha={…})"
                )
            return self.fit(table, sample_weight=sample_weight, n_jobs=n_jobs)
        counts = self._statistics(table, self._declared_states(), sample_weight, n_jobs)
        if isinstance(self.statistics_, HybridStatistics) != isinstance(counts, HybridStatistics):
            raise ValueError("a column held measurements in one table and states in the other; convert one")
        total: Any = joined_hybrid if isinstance(counts, HybridStatistics) else joined
        self._learn(total(self.statistics_, counts), self._inferred_states, self._learning_options, n_jobs)
        return self

    def _statistics(self, table: Any, declared: dict[str, States], sample_weight: Any, n_jobs: int | None) -> Any:
        """Return the statistics of a table: `FamilyCounts`, or `HybridStatistics` where columns hold measurements."""
        dag = self._spec.dag
        continuous = {one.variable for one in self._spec.gaussians}
        cases = open_cases(table, dag.nodes, declared, sample_weight, n_jobs, continuous)
        return count_hybrid(dag, cases) if cases.is_hybrid else count_cases(dag, cases)

    def _declared_states(self) -> dict[str, States]:
        """Return the known states, without those that an earlier fit took from its table."""
        return {name: states for name, states in self._spec.states.items() if name not in self._inferred_states}

    def _learn(self, counts: Any, inferred: tuple[str, ...], options: LearningOptions, n_jobs: int | None) -> None:
        if isinstance(counts, HybridStatistics):
            learned = fit_hybrid(self._spec.dag, counts, options, self.max_table_size, n_jobs)
        else:
            learned = fit_tables(counts, options, self.max_table_size, n_jobs)
        self._replace(self._spec.with_learned(learned.cpts))
        self._inferred_states = inferred
        self._learning_options = options
        self.statistics_ = counts
        self.log_likelihood_trace_ = learned.trace
