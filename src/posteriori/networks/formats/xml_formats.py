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
    choices,
    identifiers,
    numbers,
    require_names,
    rows_as_text,
    states_as_text,
)
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

    def texts_of(self, tag: str) -> list[str]:
        """Return the texts of the children with a tag."""
        return [child.text for child in self.all(tag)]


def network_of_xmlbif(root: Element, reading: Reading) -> BayesianNetwork:
    """Return the network of the root element of XMLBIF.

    References
    ----------
    Cozman (1998), The Interchange Format for Bayesian Networks, XMLBIF version 0.3.
    """
    fail = reading.fail
    network = next(root.all("NETWORK"), None)
    if network is None:
        raise fail(root.line, "there is no element NETWORK")
    for variable in network.all("VARIABLE"):
        node = reading.declare(_only(variable, "NAME", fail), variable.line)
        if variable.type != "nature":
            raise fail(node.line, f"{node.name!r} is a variable of type {variable.type!r}; only 'nature' is read")
        node.states = [*variable.texts_of("OUTCOME"), *variable.texts_of("VALUE")]
        node.properties = variable.texts_of("PROPERTY")
    for definition in [*network.all("DEFINITION"), *network.all("PROBABILITY")]:
        node = reading.node(_only(definition, "FOR", fail), definition.line)
        if node.table is not None:
            raise fail(definition.line, f"{node.name!r} is defined twice")
        node.parents, node.table_line = definition.texts_of("GIVEN"), definition.line
        node.table = numbers(node, _only(definition, "TABLE", fail).replace(",", " ").split())
        node.properties += definition.texts_of("PROPERTY")
    name = next(iter(network.texts_of("NAME")), "")
    return reading.network("" if name == "unknown" else name, network.texts_of("PROPERTY"))


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
    shown = [part for extensions in root.all("EXTENSIONS") for part in extensions.all("GENIE")]
    first_is_fastest = any(part.app.startswith("aGrUM") for part in shown)
    ours = [part for extensions in root.all("EXTENSIONS") for part in extensions.all("POSTERIORI")]
    kept = {element.id: element for part in ours for element in part.all("NODE")}
    for element in nodes.children:
        if element.tag not in ("CPT", "DETERMINISTIC"):
            problem = f"{element.id!r} is a {element.tag.lower()} node; only cpt and deterministic nodes are read"
            raise fail(element.line, problem)
        node = reading.declare(element.id, element.line)
        ids = [child.id for child in element.all("STATE")]
        node.states = ids
        node.parents = _words(element, "PARENTS")[:: -1 if first_is_fastest else 1]
        if element.tag == "CPT":
            node.table = numbers(node, _words(element, "PROBABILITIES"))
        else:
            node.table = choices(node, _words(element, "RESULTINGSTATES"))
        own = kept.get(node.name, Element("NODE", 0))
        node.title, node.properties = own.name, _properties_in(own)
        of_states = {state.id: state.name for state in own.all("STATE") if state.name is not None}
        node.state_titles = [of_states.get(one, one) for one in ids]
    properties = [text for part in ours for text in _properties_in(part)]
    return reading.network(next((part.name or "" for part in ours), root.id), properties)


def _properties_in(element: Element) -> list[str]:
    return [child.name or "" for child in element.all("PROPERTY")]


def _words(element: Element, tag: str) -> list[str]:
    return next((child.text.split() for child in element.all(tag)), [])


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
