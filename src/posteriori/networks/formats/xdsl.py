"""Read and write networks in the format of GeNIe and SMILE (.xdsl)."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from posteriori.networks.formats.format import Format
from posteriori.networks.formats.identifiers import identifiers, renamed, require_names, states_as_text
from posteriori.networks.formats.reading import Reading
from posteriori.networks.formats.xmlbif import CONTROL, Element
from posteriori.networks.graph.cpt import CPT
from posteriori.networks.graph.naming import States
from posteriori.networks.network import BayesianNetwork

_READ = ("CPT", "DETERMINISTIC")


def network_of_xdsl(root: Element, reading: Reading) -> BayesianNetwork:
    """Return the network of an element ``smile``: nodes of the types cpt and deterministic.

    References
    ----------
    BayesFusion, SMILE programmer's manual, the XDSL file format; and "Multidimensional arrays",
    https://support.bayesfusion.com/docs/SMILE/using_arrays.html: the first parent is the most significant coordinate of
    a table, the node itself the least. pyAgrum lets its first parent vary faster than its last; a file that names it
    is read so.
    """
    fail = reading.fail
    nodes = next(root.all("NODES"), None)
    if nodes is None:
        raise fail(root.line, "there is no element nodes")
    for dynamic in root.all("DYNAMIC"):
        raise fail(
            dynamic.line, "it is a dynamic network; only the nodes of one time step can be read, without <dynamic>"
        )
    states: dict[str, States] = {}
    for node in nodes.children:
        if node.tag not in _READ:
            raise fail(
                node.line, f"{node.id!r} is a {node.tag.lower()} node; only cpt and deterministic nodes are read"
            )
        if not node.id:
            raise fail(node.line, "a node has no id")
        if node.id in states:
            raise fail(node.line, f"the node {node.id!r} is declared twice")
        states[node.id] = tuple(child.id for child in node.all("STATE"))
        if not states[node.id]:
            raise fail(node.line, f"the node {node.id!r} has no state")
    if not states:
        raise fail(nodes.line, "there is no node")
    shown = [part for extensions in root.all("EXTENSIONS") for part in extensions.all("GENIE")]
    first_is_fastest = any(part.app.startswith("aGrUM") for part in shown)
    cpts = []
    for node in nodes.children:
        try:
            cpts.append(_cpt(node, states, reading, first_is_fastest))
        except ValueError as error:
            if str(error).startswith(reading.shown):
                raise
            raise fail(node.line, str(error)) from None
    ours = [part for extensions in root.all("EXTENSIONS") for part in extensions.all("POSTERIORI")]
    kept = {node.id: node for part in ours for node in part.all("NODE")}
    names, titles, properties = {}, dict(states), {}
    for known_as, listed in states.items():
        node = kept.get(known_as, Element("NODE", 0))
        names[known_as] = known_as if node.name is None else node.name
        of_states = {state.id: state.name for state in node.all("STATE") if state.name is not None}
        titles[known_as] = tuple(of_states.get(str(state), state) for state in listed)
        properties[names[known_as]] = [child.name or "" for child in node.all("PROPERTY")]
    properties[""] = [child.name or "" for part in ours for child in part.all("PROPERTY")]
    name = next((part.name or "" for part in ours), root.id)
    return reading.network(root.line, names.values(), renamed(cpts, names, titles), name, properties)


def _cpt(node: Element, states: dict[str, States], reading: Reading, first_is_fastest: bool) -> CPT:
    names = _words(node, "PARENTS")
    parents = reading.parents(node.id, names[::-1] if first_is_fastest else names, states, "node")
    if node.tag == "DETERMINISTIC":
        return reading.cpt_of_choices(node.id, states[node.id], parents, _words(node, "RESULTINGSTATES"))
    return reading.cpt_of_words(node.id, states[node.id], parents, _words(node, "PROBABILITIES"))


def _words(node: Element, tag: str) -> list[str]:
    return next((child.text.split() for child in node.all(tag)), [])


def write_xdsl(network: BayesianNetwork) -> str:
    """Write a network for GeNIe, with every digit of its numbers, parents before their children.

    Names that are no identifiers, and properties, are kept in an extension of the file.
    """
    require_names(network.variables, ".xdsl")
    names = identifiers(network.variables)
    name = identifiers([network.name or "network"])[network.name or "network"]
    kept = [f"    <posteriori name={_attribute(network.name)}>", *_properties(network.properties.get(""))]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<smile version="1.0" id="{name}">', "  <nodes>"]
    by_name = {cpt.variable: cpt for cpt in network.cpts}
    for variable in network.dag.topological_order:
        cpt = by_name[variable]
        texts = states_as_text(cpt.variable, cpt.states)
        states = identifiers(texts)
        kept.append(f"      <node id={quoteattr(names[variable])} name={_attribute(variable)}>")
        kept += [
            f"        <state id={quoteattr(states[text])} name={_attribute(text)} />"
            for text in texts
            if text != states[text]
        ]
        kept += [*_properties(network.properties.get(variable)), "      </node>"]
        lines.append(f"    <cpt id={quoteattr(names[variable])}>")
        lines += [f"      <state id={quoteattr(states[text])} />" for text in texts]
        if cpt.parents:
            lines.append(f"      <parents>{' '.join(names[parent] for parent in cpt.parents)}</parents>")
        numbers = " ".join(map(repr, cpt.probabilities.ravel().tolist()))
        lines += [f"      <probabilities>{numbers}</probabilities>", "    </cpt>"]
    # How GeNIe draws the nodes; pyAgrum, too, reads no file without it.
    lines += ["  </nodes>", "  <extensions>", f'    <genie version="1.0" app="posteriori" name="{name}">']
    for k, variable in enumerate(network.dag.topological_order):
        left, top = 40 + 140 * (k % 6), 40 + 80 * (k // 6)
        lines += [
            f"      <node id={quoteattr(names[variable])}>",
            f"        <name>{escape(variable)}</name>",
            '        <interior color="e5f6f7" />',
            '        <outline color="000080" />',
            '        <font color="000000" name="Arial" size="8" />',
            f"        <position>{left} {top} {left + 100} {top + 40}</position>",
            "      </node>",
        ]
    return "\n".join([*lines, "    </genie>", *kept, "    </posteriori>", "  </extensions>", "</smile>"]) + "\n"


def _properties(properties: Sequence[str] | None) -> list[str]:
    return [f"        <property name={_attribute(text)} />" for text in properties or ()]


def _attribute(text: str) -> str:
    """Return text as the value of an attribute, in which blanks other than spaces are written by their numbers."""
    if CONTROL.search(text):
        raise ValueError(f"{text!r} cannot be written in .xdsl; rename it, without control characters")
    return quoteattr(text, {letter: f"&#{ord(letter)};" for letter in "\t\n\r"})


XDSL = Format((".xdsl",), write_xdsl, network_of_xdsl, begins=("<SMILE",))
