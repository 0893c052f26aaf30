"""Networks from and to objects of networkx, pgmpy and pyAgrum."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np

from posteriori.networks.formats.reading import states_as_text
from posteriori.networks.graph.cpt import CPT
from posteriori.networks.graph.dag import DAG
from posteriori.networks.graph.linear_gaussian import LinearGaussian
from posteriori.networks.network import BayesianNetwork


def to_networkx(network: BayesianNetwork) -> Any:
    """Return a networkx DiGraph: each node has its table as the attribute ``cpt``, and ``states`` if it has any.

    Parameters
    ----------
    network : BayesianNetwork

    Returns
    -------
    networkx.DiGraph
    """
    nx = _imported("networkx")

    graph = nx.DiGraph(name=network.name)
    for name in network.variables:
        table = network.cpt(name)
        graph.add_node(name, cpt=table, **({"states": table.states} if isinstance(table, CPT) else {}))
    graph.add_edges_from(network.edges)
    return graph


def from_networkx(graph: Any) -> BayesianNetwork:
    """Return the network of a networkx DiGraph: its edges, and the tables of nodes with an attribute ``cpt``.

    Parameters
    ----------
    graph : networkx.DiGraph
        Its nodes are strings.

    Returns
    -------
    BayesianNetwork
        Without tables where the nodes have none: `fit` learns them.

    Raises
    ------
    TypeError
        The graph is not directed, or a node is no string.
    ValueError
        The edges form a cycle, or a table does not fit them.
    """
    if not graph.is_directed():
        raise TypeError("the graph is not directed; give a networkx.DiGraph")
    tables = [data["cpt"] for _, data in graph.nodes(data=True) if "cpt" in data]
    dag = DAG(tuple(graph.nodes), tuple(graph.edges))
    return BayesianNetwork(dag.edges, variables=dag.nodes, cpts=tables, name=str(graph.graph.get("name", "")))


def to_pgmpy(network: BayesianNetwork) -> Any:
    """Return a DiscreteBayesianNetwork of pgmpy, or a LinearGaussianBayesianNetwork if all variables are continuous.

    Parameters
    ----------
    network : BayesianNetwork

    Returns
    -------
    pgmpy.models.DiscreteBayesianNetwork or pgmpy.models.LinearGaussianBayesianNetwork

    Raises
    ------
    ValueError
        The network has variables of both kinds, for which pgmpy has no model.
    """
    models = _imported("pgmpy", ".models")
    LinearGaussianCPD = _imported("pgmpy", ".factors.continuous").LinearGaussianCPD
    TabularCPD = _imported("pgmpy", ".factors.discrete").TabularCPD

    if network.gaussians and network.cpts:
        raise ValueError("the network has discrete and continuous variables, and pgmpy has no model of both")
    if network.gaussians:
        model = models.LinearGaussianBayesianNetwork()
        model.add_nodes_from(network.variables)
        model.add_edges_from(network.edges)
        for one in network.gaussians:
            numbers = [float(one.intercept), *one.coefficients.tolist()]
            model.add_cpds(LinearGaussianCPD(one.variable, numbers, float(one.variance) ** 0.5, list(one.continuous)))
        return model
    model = models.DiscreteBayesianNetwork()
    model.add_nodes_from(network.variables)
    model.add_edges_from(network.edges)
    for cpt in network.cpts:
        states = {name: list(listed) for name, listed in {cpt.variable: cpt.states, **cpt.parents}.items()}
        sizes = [len(listed) for listed in cpt.parents.values()]
        values = cpt.probabilities.reshape(-1, len(cpt.states)).T
        parents = {"evidence": list(cpt.parents), "evidence_card": sizes} if sizes else {}
        model.add_cpds(TabularCPD(cpt.variable, len(cpt.states), values, state_names=states, **parents))
    return model


def from_pgmpy(model: Any) -> BayesianNetwork:
    """Return the network of a discrete or a linear-Gaussian model of pgmpy.

    Parameters
    ----------
    model : pgmpy.models.DiscreteBayesianNetwork or pgmpy.models.LinearGaussianBayesianNetwork

    Returns
    -------
    BayesianNetwork

    Raises
    ------
    ValueError
        A node has no table.
    """
    tables: list[CPT | LinearGaussian] = []
    for name in model.nodes:
        cpd = model.get_cpds(name)
        if cpd is None:
            raise ValueError(f"{name!r} has no table; add its CPD, or give the edges: BayesianNetwork(model.edges)")
        if hasattr(cpd, "beta"):
            intercept, *slopes = np.asarray(cpd.beta, np.float64).tolist()
            variance = np.asarray(float(cpd.std) ** 2)
            tables.append(LinearGaussian(name, tuple(cpd.evidence or ()), {}, np.asarray(intercept), slopes, variance))
            continue
        _, *parents = cpd.variables
        states = {one: cpd.state_names[one] for one in cpd.variables}
        table = np.moveaxis(np.asarray(cpd.values, np.float64), 0, -1)
        tables.append(CPT(name, states[name], {one: states[one] for one in parents}, table))
    return BayesianNetwork(list(model.edges), variables=list(model.nodes), cpts=tables)


def to_pyagrum(network: BayesianNetwork) -> Any:
    """Return a BayesNet of pyAgrum.

    Parameters
    ----------
    network : BayesianNetwork

    Returns
    -------
    pyagrum.BayesNet

    Raises
    ------
    ValueError
        A variable is continuous, or two states of one have the same text.
    """
    gum = _pyagrum()
    if network.gaussians:
        raise ValueError(f"{network.gaussians[0].variable!r} is continuous, which a BayesNet of pyAgrum has not")
    model = gum.BayesNet(network.name or "network")
    for cpt in network.cpts:
        model.add(gum.LabelizedVariable(cpt.variable, cpt.variable, states_as_text(cpt.variable, cpt.states)))
    for parent, child in network.edges:
        model.addArc(parent, child)
    for cpt in network.cpts:
        tensor = model.cpt(cpt.variable)
        names = [*cpt.parents, cpt.variable]
        order = [names.index(name) for name in reversed(tensor.names)]  # its first variable varies fastest
        tensor.fillWith(cpt.probabilities.transpose(order).ravel().tolist())
    return model


def from_pyagrum(model: Any) -> BayesianNetwork:
    """Return the network of a BayesNet of pyAgrum.

    Parameters
    ----------
    model : pyagrum.BayesNet

    Returns
    -------
    BayesianNetwork
        Its states are strings.
    """
    names = [model.variable(node).name() for node in model.topologicalOrder()]
    states = {name: tuple(model.variable(name).labels()) for name in names}
    cpts = []
    for name in names:
        tensor = model.cpt(name)
        axes = list(reversed(tensor.names))
        table = np.asarray(tensor.toarray(), np.float64)
        parents = [one for one in axes if one != name]
        order = [axes.index(one) for one in (*parents, name)]
        cpts.append(
            CPT(name, tuple(states[name]), {one: tuple(states[one]) for one in parents}, table.transpose(order))
        )
    return BayesianNetwork(cpts=cpts, variables=names)


def _pyagrum() -> Any:
    try:
        return _imported("pyagrum")
    except ImportError:
        if importlib.util.find_spec("pyAgrum") is None:
            raise
        return _imported("pyAgrum")  # its name before version 2


def _imported(package: str, module: str = "") -> Any:
    """Return a module of a package; ImportError with the command that installs it."""
    try:
        return importlib.import_module(package + module)
    except ImportError as error:
        problem = f"{package} is needed, and {error.name} is not installed; run: pip install {package}"
        raise ImportError(problem) from None
