"""The methods of a network that answer questions about every row of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from posteriori.networks.state import NetworkState
from posteriori.typing import Array


class TableQueries(NetworkState):
    """Methods of `BayesianNetwork`: questions about the rows of a table."""

    def log_likelihood(self, table: Any, *, n_jobs: int | None = None) -> Array:
        """Return log p(row) in nats, (n,), missing cells summed out.

        Parameters
        ----------
        table : table (n, d)
            Any data frame whose columns have the names of the variables, in any order; a variable may be absent.
        n_jobs : int, optional
            Threads; all cores by default.

        Returns
        -------
        ndarray (n,)
            −inf in rows of probability 0; the sum is the log-likelihood of the table.

        Raises
        ------
        ValueError
            A column is no variable, a cell no state, or exact inference needs more cells than max_table_size.
        """
        log_likelihood: Array = self._queries.log_likelihood(self._inference, table, n_jobs)
        return log_likelihood

    def predict_proba(self, table: Any, target: str, *, n_jobs: int | None = None) -> Array:
        """Return p(target | the other cells of the row), (n, K), missing cells summed out.

        Parameters
        ----------
        table : table (n, d)
            As in `log_likelihood`; a column of the target is ignored.
        target : str
        n_jobs : int, optional
            Threads; all cores by default.

        Returns
        -------
        ndarray (n, K)
            In the order of ``net.states(target)``; NaN, with a warning, in rows of probability 0.

        Raises
        ------
        ValueError
            As in `log_likelihood`; or there is no such variable.
        """
        posterior: Array = self._queries.target_marginal(self._inference, table, target, n_jobs)
        return posterior

    def marginals(
        self,
        table: Any,
        variables: str | Sequence[str] | None = None,
        *,
        soft: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
    ) -> dict[str, Array]:
        """Return p(variable | the known cells of the row) per variable.

        Parameters
        ----------
        table : table (n, d)
            As in `log_likelihood`.
        variables : str or sequence of str, optional
            By default all.
        soft : mapping from str to array-like (K,) or (n, K), optional
            Likelihoods of the states of a variable (soft evidence), for all rows or per row.
        n_jobs : int, optional
            Threads; all cores by default.

        Returns
        -------
        dict from str to ndarray (n, K)
            1 at the state of a known cell; NaN, with a warning, in rows of probability 0. Of a continuous variable the
            mean and the variance, (n, 2).

        Raises
        ------
        ValueError
            As in `log_likelihood`; or a likelihood is negative or of another shape.
        """
        found: dict[str, Array] = self._queries.marginals(self._inference, table, variables, soft, n_jobs)
        return found
