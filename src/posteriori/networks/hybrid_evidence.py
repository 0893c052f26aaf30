"""Evidence about networks with continuous variables: values, noisy measurements, and tables with numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.networks.evidence import Evidence, read_evidence
from posteriori.networks.hybrid_inference import Compiled, HybridInference
from posteriori.networks.linear_gaussian import LinearGaussian
from posteriori.networks.naming import require_findings, require_variable
from posteriori.tables import Column, Schema, read_table
from posteriori.tables.missing import is_missing
from posteriori.tables.records import read_records
from posteriori.typing import Array


@dataclass(frozen=True)
class Measurement:
    """Soft evidence about a continuous variable: a measured value whose error is normal.

    Attributes
    ----------
    value : float
    standard_deviation : float
        Of the error of the measurement, above 0, in the unit of the value.
    """

    value: float
    standard_deviation: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"the value of a measurement is {self.value!r}; it must be finite")
        if not 0 < self.standard_deviation < math.inf:
            raise ValueError(f"standard_deviation is {self.standard_deviation!r}; it must be above 0 and finite")

    def __str__(self) -> str:
        return f"{self.value:g} ± {self.standard_deviation:g}"


@dataclass(frozen=True)
class HybridEvidence:
    """Evidence about one case.

    Attributes
    ----------
    discrete : Evidence
    values : dict from str to float
        Of continuous variables.
    measured : dict from str to Measurement
    """

    discrete: Evidence
    values: dict[str, float]
    measured: dict[str, Measurement]

    @property
    def children(self) -> tuple[LinearGaussian, ...]:
        """The measurements as children of what they measure: N(x, error²)."""
        return tuple(
            LinearGaussian(_child(name), (name,), {}, 0.0, [1.0], one.standard_deviation**2)  # type: ignore[arg-type]
            for name, one in self.measured.items()
        )

    @property
    def numbers(self) -> dict[str, Array]:
        """The values and the measured values, (1,)."""
        measured = {_child(name): np.array([one.value]) for name, one in self.measured.items()}
        return {name: np.array([value]) for name, value in self.values.items()} | measured

    def of(self, compiled: Compiled, soft: Mapping[int, Array]) -> Evidence:
        """Return the evidence about the discrete and auxiliary variables of a compiled network."""
        likelihoods = dict(self.discrete.likelihoods)
        names = compiled.inference.dag.nodes
        for position, likelihood in soft.items():
            name = names[position]
            likelihoods[name] = likelihoods[name] * likelihood[0] if name in likelihoods else likelihood[0]
        return Evidence(compiled.inference.states, likelihoods)

    @property
    def known(self) -> set[str]:
        """The variables whose value or state is certain."""
        names = tuple(self.discrete.states)
        return {names[k] for k in self.discrete.hard} | set(self.values)


def _child(name: str) -> str:
    return f"\1{name}"


def read_hybrid_evidence(given: Mapping[str, Any] | None, inference: HybridInference) -> HybridEvidence:
    """Read evidence about one case: for a continuous variable a number or a `Measurement`.

    Raises
    ------
    TypeError
        The evidence is no mapping.
    ValueError
        There is no such variable or state, or the value of a continuous variable is no finite number.
    """
    if given is not None:
        require_findings("evidence", given)
    findings = dict(given or {})
    values, measured = {}, {}
    for name in list(findings):
        require_variable(name, inference.dag.parents)
        if name in inference.states:
            continue
        finding = findings.pop(name)
        if isinstance(finding, Measurement):
            measured[name] = finding
        elif isinstance(finding, set | frozenset | list | tuple | Mapping) or not is_missing(finding):
            values[name] = _number(name, finding)
    return HybridEvidence(read_evidence(findings, inference.states), values, measured)


def _number(name: str, finding: Any) -> float:
    if isinstance(finding, bool | str) or not isinstance(finding, int | float | np.number):
        raise ValueError(
            f"the evidence about {name!r} is {finding!r}, but it is continuous; give a number, or a Measurement"
        )
    value = float(finding)
    if not math.isfinite(value):
        raise ValueError(f"the evidence about {name!r} is {finding!r}; give a finite number")
    return value


def read_cases(table: Any, inference: HybridInference, ignored: str | None = None) -> tuple[Array, Array]:
    """Read a table as codes of the discrete variables, −1 where missing, and numbers of the others, NaN where missing.

    Raises
    ------
    ValueError
        A column is no variable, a cell is no state of its variable, or a continuous column holds no numbers.
    """
    records = read_records(table, inference.dag.nodes, "the network")
    opened = read_table(table) if records is None else records
    names = opened.names if opened.named else inference.dag.nodes
    if len(names) != len(opened.names):
        raise ValueError(
            f"the table has {len(opened.names)} columns without names, but the network has "
            f"{len(inference.dag.nodes)} variables; name the columns, or give one for each variable"
        )
    for name in names:
        require_variable(name, inference.dag.parents)
    all_rows = slice(0, opened.n_rows)
    numbers = np.full((opened.n_rows, len(inference.continuous)), np.nan)
    for j, name in enumerate(names):
        if name not in inference.states and name != ignored:
            if opened.column(j, categorical=False).kind != "continuous":
                raise ValueError(f"column {name!r} holds no numbers, but the variable is continuous; convert it")
            column = opened.numbers([j], [Column(name, "continuous")], all_rows)[:, 0]
            numbers[:, inference.continuous.index(name)] = column
    if np.isinf(numbers).any():
        name = inference.continuous[int(np.argwhere(np.isinf(numbers))[0, 1])]
        raise ValueError(f"column {name!r} holds an infinite number; leave such cells empty")
    codes = np.full((opened.n_rows, len(inference.states)), -1, np.int64)
    for position, (name, states) in enumerate(inference.states.items()):
        if name in names and name != ignored:
            cells = _one_column(opened, names.index(name), name, states)
            codes[:, position] = cells
    return codes, numbers


def _one_column(opened: Any, j: int, name: str, states: Any) -> Array:
    column = Column(name, "categorical", states, declared=True)
    seen = opened.column(j, categorical=True)
    unknown = [cell for cell in seen.categories if cell not in column.lookup]
    if unknown and (not seen.declared or len(unknown) == len(seen.categories)):
        raise ValueError(f"column {name!r} holds {unknown[0]!r}, which is no state of {name!r}")
    codes, unseen = opened.codes([j], Schema((column,)), [column], slice(0, opened.n_rows))
    if unseen:
        raise ValueError(f"column {name!r} holds a cell that is no state of {name!r}")
    column_codes: Array = codes[:, 0].astype(np.int64) - 1
    return column_codes
