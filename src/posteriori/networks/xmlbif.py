"""XMLBIF 0.3: Bayesian networks as XML."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape

import numpy as np

from posteriori.networks.bif import make_cpt, state_names
from posteriori.networks.cpt import CPT, ROUNDING
from posteriori.networks.naming import States, closest
from posteriori.networks.network import BayesianNetwork

_DECLARATION = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE BIF [
  <!ELEMENT BIF ( NETWORK )*>
  <!ATTLIST BIF VERSION CDATA #REQUIRED>
  <!ELEMENT NETWORK ( NAME, ( PROPERTY | VARIABLE | DEFINITION )* )>
  <!ELEMENT NAME (#PCDATA)>
  <!ELEMENT VARIABLE ( NAME, ( OUTCOME | PROPERTY )* )>
  <!ATTLIST VARIABLE TYPE (nature|decision|utility) "nature">
  <!ELEMENT OUTCOME (#PCDATA)>
  <!ELEMENT DEFINITION ( FOR | GIVEN | TABLE | PROPERTY )*>
  <!ELEMENT FOR (#PCDATA)>
  <!ELEMENT GIVEN (#PCDATA)>
  <!ELEMENT TABLE (#PCDATA)>
  <!ELEMENT PROPERTY (#PCDATA)>
]>"""


@dataclass
class Element:
    """An element of an XML file, with the line that it starts on."""

    tag: str
    line: int
    attributes: dict[str, str]
    texts: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What is written in it, without the blanks around."""
        return "".join(self.texts).strip()

    def all(self, tag: str) -> Iterator[Element]:
        """Yield the children with a tag."""
        return (child for child in self.children if child.tag == tag)


def read_xmlbif(content: bytes, fail: Callable[[int, str], Exception], tolerance: float = ROUNDING) -> BayesianNetwork:
    """Read a network from XMLBIF.

    Parameters
    ----------
    content : bytes
    fail : callable
        Makes the error to raise of a line number and what is wrong there.
    tolerance : float
        By how much a row may miss the sum of 1, being rounded.

    References
    ----------
    Cozman (1998), The Interchange Format for Bayesian Networks, XMLBIF version 0.3.
    """
    root = _parse(content, fail)
    if root.tag != "BIF":
        raise fail(root.line, f"expected the element BIF, found {root.tag}")
    network = next(root.all("NETWORK"), None)
    if network is None:
        raise fail(root.line, "there is no element NETWORK")
    name = next((child.text for child in network.all("NAME")), "")
    properties = {"": [child.text for child in network.all("PROPERTY")]}
    states: dict[str, States] = {}
    for variable in network.all("VARIABLE"):
        named = _only(variable, "NAME", fail)
        if variable.attributes.get("TYPE", "nature") != "nature":
            raise fail(variable.line, f"{named!r} is a {variable.attributes['TYPE']} variable; only nature is read")
        if named in states:
            raise fail(variable.line, f"the variable {named!r} is declared twice")
        states[named] = tuple(child.text for child in [*variable.all("OUTCOME"), *variable.all("VALUE")])
        if not states[named]:
            raise fail(variable.line, f"the variable {named!r} has no OUTCOME")
        properties[named] = [child.text for child in variable.all("PROPERTY")]
    cpts: dict[str, CPT] = {}
    for definition in [*network.all("DEFINITION"), *network.all("PROBABILITY")]:
        cpt = _cpt(definition, states, tolerance, fail)
        if cpt.variable in cpts:
            raise fail(definition.line, f"{cpt.variable!r} is defined twice")
        cpts[cpt.variable] = cpt
        properties[cpt.variable] += [child.text for child in definition.all("PROPERTY")]
    if not states:
        raise fail(network.line, "there is no variable")
    for named in states:
        if named not in cpts:
            raise fail(network.line, f"the variable {named!r} has no DEFINITION")
    try:
        return BayesianNetwork(
            variables=states,
            cpts=[cpts[named] for named in states],
            name="" if name == "unknown" else name,
            properties=properties,
        )
    except ValueError as error:
        raise fail(network.line, str(error)) from None


def _parse(content: bytes, fail: Callable[[int, str], Exception]) -> Element:
    """Return the root element; entities, by which a small file can grow beyond memory, are refused."""
    parser = expat.ParserCreate()
    root = Element("", 0, {})
    stack = [root]

    def start(tag: str, attributes: dict[str, str]) -> None:
        upper = {key.upper(): value for key, value in attributes.items()}
        element = Element(tag.upper(), parser.CurrentLineNumber, upper)
        stack[-1].children.append(element)
        stack.append(element)

    def refuse_entity(name: str, *_: Any) -> None:
        raise fail(parser.CurrentLineNumber, f"it declares the entity {name!r}; entities are not read, so write it out")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: stack.pop() and None
    parser.CharacterDataHandler = lambda text: stack[-1].texts.append(text)
    parser.EntityDeclHandler = refuse_entity
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise fail(error.lineno, f"this is no well-formed XML: {expat.ErrorString(error.code)}") from None
    return root.children[0]


def _only(element: Element, tag: str, fail: Callable[[int, str], Exception]) -> str:
    found = list(element.all(tag))
    if len(found) != 1 or not found[0].text:
        raise fail(element.line, f"a {element.tag} needs one {tag}; it has {len(found)}")
    return found[0].text


def _cpt(
    definition: Element, states: dict[str, States], tolerance: float, fail: Callable[[int, str], Exception]
) -> CPT:
    variable = _only(definition, "FOR", fail)
    parents = [child.text for child in definition.all("GIVEN")]
    for name in (variable, *parents):
        if name not in states:
            raise fail(definition.line, f"there is no variable {name!r}; {closest(name, states)}")
    if len({variable, *parents}) < 1 + len(parents):
        raise fail(definition.line, f"a variable occurs twice in the definition of {variable!r}")
    written = _only(definition, "TABLE", fail).replace(",", " ").split()
    values = []
    for word in written:
        try:
            values.append(float(word))
        except ValueError:
            raise fail(definition.line, f"the table of {variable!r} holds {word!r}, which is no number") from None
    shape = (*(len(states[name]) for name in parents), len(states[variable]))
    if len(values) != math.prod(shape):
        raise fail(definition.line, f"the table of {variable!r} has {len(values)} numbers; it needs {math.prod(shape)}")
    return make_cpt(
        variable,
        states[variable],
        {name: states[name] for name in parents},
        np.array(values).reshape(shape),  # unlike in BIF the variable varies fastest
        tolerance,
        lambda said: fail(definition.line, said),
    )


def write_xmlbif(network: BayesianNetwork) -> str:
    """Write a network as XMLBIF 0.3: every number to its last digit.

    Raises
    ------
    ValueError
        A name or state begins or ends with a blank, or holds a character that XML has not.
    """
    lines = [_DECLARATION, '<BIF VERSION="0.3">', "<NETWORK>", _element("NAME", network.name or "unknown")]
    lines += [_element("PROPERTY", text) for text in network.properties.get("", ())]
    for cpt in network.cpts:
        lines += ['<VARIABLE TYPE="nature">', _element("NAME", cpt.variable)]
        lines += [_element("OUTCOME", state) for state in state_names(cpt.variable, cpt.states)]
        lines += [_element("PROPERTY", text) for text in network.properties.get(cpt.variable, ())]
        lines.append("</VARIABLE>")
    for cpt in network.cpts:
        lines += ["<DEFINITION>", _element("FOR", cpt.variable)]
        lines += [_element("GIVEN", parent) for parent in cpt.parents]
        rows = cpt.probabilities.reshape(-1, len(cpt.states)).tolist()
        lines += ["<TABLE>", *(" ".join(map(repr, row)) for row in rows), "</TABLE>", "</DEFINITION>"]
    return "\n".join([*lines, "</NETWORK>", "</BIF>"]) + "\n"


def _element(tag: str, text: str) -> str:
    if not text or text != text.strip() or any(ord(letter) < 32 for letter in text):
        raise ValueError(f"{text!r} cannot be written in XMLBIF as it is; rename it, without blanks around it")
    return f"<{tag}>{escape(text)}</{tag}>"
