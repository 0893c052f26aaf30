"""Read and write networks in XMLBIF 0.3 and in the format of GeNIe and SMILE (.xdsl)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from posteriori.networks.formats.reading import (
    Format,
    Reading,
    identifiers,
    renamed,
    require_names,
    rows_as_text,
    states_as_text,
)
from posteriori.networks.graph.cpt import CPT
from posteriori.networks.graph.naming import States
from posteriori.networks.network import BayesianNetwork

# Without a document type: pyAgrum cannot read a file with one, and other readers do not need it.
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'
_PIECE = 1 << 16  # bytes given to expat at a time
_LONGEST = 1 << 20  # bytes of a tag
_DEEPEST = 32
_ATTRIBUTES = ("TYPE", "ID", "NAME", "APP")
_MOST_PARTS = 2_000_000  # elements and attributes, of about 200 bytes each
CONTROL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Fail = Callable[[int, str], Exception]


@dataclass(slots=True)
class Element:
    """An element of an XML file, with the number of its first line and its attributes TYPE, ID, NAME and APP."""

    tag: str
    line: int
    type: str = "nature"
    id: str = ""
    name: str | None = None
    app: str = ""
    texts: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its text, without blanks around it."""
        return "".join(self.texts).strip()

    def all(self, tag: str) -> Iterator[Element]:
        """Yield the children with a tag."""
        return (child for child in self.children if child.tag == tag)


def network_of_xmlbif(root: Element, reading: Reading) -> BayesianNetwork:
    """Return the network of the root element of XMLBIF.

    Parameters
    ----------
    root : Element
    reading : Reading
        The tolerance of row sums, and the errors to raise.

    References
    ----------
    Cozman (1998), The Interchange Format for Bayesian Networks, XMLBIF version 0.3.
    """
    fail = reading.fail
    network = next(root.all("NETWORK"), None)
    if network is None:
        raise fail(root.line, "there is no element NETWORK")
    name = next((child.text for child in network.all("NAME")), "")
    properties = {"": [child.text for child in network.all("PROPERTY")]}
    states: dict[str, States] = {}
    for variable in network.all("VARIABLE"):
        named = _only(variable, "NAME", fail)
        if variable.type != "nature":
            raise fail(variable.line, f"{named!r} is a variable of type {variable.type!r}; only 'nature' is read")
        if named in states:
            raise fail(variable.line, f"the variable {named!r} is declared twice")
        states[named] = tuple(child.text for child in [*variable.all("OUTCOME"), *variable.all("VALUE")])
        if not states[named]:
            raise fail(variable.line, f"the variable {named!r} has no OUTCOME")
        properties[named] = [child.text for child in variable.all("PROPERTY")]
    cpts: dict[str, CPT] = {}
    for definition in [*network.all("DEFINITION"), *network.all("PROBABILITY")]:
        cpt = _cpt(definition, states, reading)
        if cpt.variable in cpts:
            raise fail(definition.line, f"{cpt.variable!r} is defined twice")
        cpts[cpt.variable] = cpt
        properties[cpt.variable] += [child.text for child in definition.all("PROPERTY")]
    if not states:
        raise fail(network.line, "there is no variable")
    for named in states:
        if named not in cpts:
            raise fail(network.line, f"the variable {named!r} has no DEFINITION")
    listed = [cpts[named] for named in states]
    return reading.network(network.line, states, listed, "" if name == "unknown" else name, properties)


def parse_xml(content: bytes, fail: Fail) -> Element:
    """Return the root element.

    A small file must not exhaust the memory. Expat therefore reads it in pieces, and these are errors: entities, tags
    and comments of more than a megabyte, elements nested more than 32 deep, and too many elements and attributes.
    """
    builder = _Builder(expat.ParserCreate(), fail)
    parser = builder.parser
    try:
        for start in range(0, len(content), _PIECE):
            piece = content[start : start + _PIECE]
            parser.Parse(piece)
            if start + len(piece) - parser.CurrentByteIndex > _LONGEST:
                raise fail(
                    parser.CurrentLineNumber, f"a tag, comment or declaration is longer than {_LONGEST:,} characters"
                )
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise fail(error.lineno, f"this is no well-formed XML: {expat.ErrorString(error.code)}") from None
    return builder.root.children[0]


class _Builder:
    """Builds elements from the events of expat."""

    def __init__(self, parser: expat.XMLParserType, fail: Fail) -> None:
        self.parser = parser
        self.root = Element("", 0)
        self._stack = [self.root]
        self._parts = 0
        self._fail = fail
        parser.buffer_text = True
        parser.specified_attributes = True
        if hasattr(parser, "SetReparseDeferralEnabled"):  # deferral would hide the length of an unfinished tag
            parser.SetReparseDeferralEnabled(False)
        parser.XmlDeclHandler = self._declaration
        parser.EntityDeclHandler = self._entity
        parser.AttlistDeclHandler = self._count
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and not _is_read(encoding):
            raise self._fail(1, f"its encoding is {encoding!r}, which is not read; save the file as UTF-8")

    def _entity(self, name: str, *_: Any) -> None:
        problem = f"it declares the entity {name!r}; entities are not read, so write it out"
        raise self._fail(self.parser.CurrentLineNumber, problem)

    def _count(self, *_: Any, parts: int = 1) -> None:
        self._parts += parts
        if self._parts > _MOST_PARTS:
            problem = f"it has more than {_MOST_PARTS:,} elements and attributes; networks so large are read from BIF"
            raise self._fail(self.parser.CurrentLineNumber, problem)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count(parts=1 + len(attributes))
        if len(self._stack) > _DEEPEST:
            raise self._fail(self.parser.CurrentLineNumber, f"its elements are nested more than {_DEEPEST} deep")
        element = Element(sys.intern(tag.upper()), self.parser.CurrentLineNumber)
        for key, value in attributes.items():
            if key.upper() in _ATTRIBUTES:
                setattr(element, key.lower(), value)
        self._stack[-1].children.append(element)
        self._stack.append(element)

    def _end(self, tag: str) -> None:
        self._stack.pop()

    def _text(self, text: str) -> None:
        self._stack[-1].texts.append(text)


def _is_read(encoding: str) -> bool:
    """Whether expat knows an encoding, or Python knows it with one byte per character, so that expat can use it."""
    if encoding.upper() in ("UTF-8", "UTF-16", "UTF-16LE", "UTF-16BE", "ISO-8859-1", "US-ASCII"):
        return True
    try:
        return len(bytes(range(256)).decode(encoding, "replace")) == 256
    except (LookupError, ValueError):
        return False


def _only(element: Element, tag: str, fail: Fail) -> str:
    children = list(element.all(tag))
    if len(children) != 1:
        raise fail(element.line, f"a {element.tag} needs one {tag}; it has {len(children)}")
    if not children[0].text:
        raise fail(children[0].line, f"the {tag} of a {element.tag} is empty")
    return children[0].text


def _cpt(definition: Element, states: dict[str, States], reading: Reading) -> CPT:
    fail = reading.fail
    variable = _only(definition, "FOR", fail)
    names = [child.text for child in definition.all("GIVEN")]
    words = _only(definition, "TABLE", fail).replace(",", " ").split()
    try:  # in XMLBIF the variable varies fastest, as in a CPT
        parents = reading.parents(variable, names, states, "variable")
        return reading.cpt_of_words(variable, states[variable], parents, words)
    except ValueError as error:
        raise fail(definition.line, str(error)) from None


def write_xmlbif(network: BayesianNetwork) -> str:
    """Write a network as XMLBIF 0.3, with every digit of its numbers.

    Raises
    ------
    ValueError
        A name or state begins or ends with a blank, or holds a character that XML does not allow.
    """
    lines = [_DECLARATION, '<BIF VERSION="0.3">', "<NETWORK>", _element("NAME", network.name or "unknown")]
    lines += [_element("PROPERTY", text) for text in network.properties.get("", ())]
    for cpt in network.cpts:
        lines += ['<VARIABLE TYPE="nature">', _name("NAME", cpt.variable)]
        lines += [_element("OUTCOME", state) for state in states_as_text(cpt.variable, cpt.states)]
        lines += [_element("PROPERTY", text) for text in network.properties.get(cpt.variable, ())]
        lines.append("</VARIABLE>")
    for cpt in network.cpts:
        lines += ["<DEFINITION>", _name("FOR", cpt.variable)]
        lines += [_name("GIVEN", parent) for parent in cpt.parents]
        lines += ["<TABLE>", *rows_as_text(cpt), "</TABLE>", "</DEFINITION>"]
    return "\n".join([*lines, "</NETWORK>", "</BIF>"]) + "\n"


def _element(tag: str, text: str) -> str:
    if text != text.strip() or CONTROL.search(text):
        raise ValueError(
            f"{text!r} cannot be written in XMLBIF; rename it, without blanks around it and without control characters"
        )
    return f"<{tag}>{escape(text, {chr(13): '&#13;'})}</{tag}>"


def _name(tag: str, name: str) -> str:
    if not name:
        raise ValueError("a variable without a name cannot be written in XMLBIF; name it")
    return _element(tag, name)


XMLBIF = Format((".xmlbif", ".bifxml", ".xml"), write_xmlbif, network_of_xmlbif, begins=("<BIF",))


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
            cpts.append(_cpt_of_node(node, states, reading, first_is_fastest))
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


def _cpt_of_node(node: Element, states: dict[str, States], reading: Reading, first_is_fastest: bool) -> CPT:
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
