"""Network files: all formats by their endings, plain or compressed, and model files."""

from __future__ import annotations

import gzip
import math
import os
import re
import zlib
from collections.abc import Callable
from io import BufferedIOBase, BytesIO
from pathlib import Path
from typing import Any

from posteriori.model_files import Content, is_model_file, pack, parse, read_file, refuse_unknown, unpack, write_file
from posteriori.networks.formats.bif import BIF, read_bif
from posteriori.networks.formats.block_formats import NET
from posteriori.networks.formats.netica import DNE
from posteriori.networks.formats.plain_formats import DOT, JSON, UAI, read_json
from posteriori.networks.formats.reading import MAX_TABLE_SIZE, Format, Reading
from posteriori.networks.formats.xml_formats import XDSL, XMLBIF, parse_xml
from posteriori.networks.graph.specification import table_size
from posteriori.networks.network import BayesianNetwork
from posteriori.support.atomic_write import write_whole
from posteriori.support.typing import Array

_KIND = "BayesianNetwork"


def write_model_file(network: BayesianNetwork, path: Path) -> None:
    """Write a network to a model file."""
    arrays: dict[str, Array] = {}
    content = {"model": _KIND, "parameters": pack(network.to_parameters(), "parameters", arrays)}
    write_file(path, content, arrays, network_of_content)


def read_model_file(path: Path) -> BayesianNetwork:
    """Read a network from a model file; ValueError if it holds another model, or is damaged."""
    metadata, arrays = read_file(path)
    with refuse_unknown(path):
        content = parse(metadata["content"])
        kind = content["model"]
        if kind == _KIND:
            return network_of_content(content, arrays)
    raise ValueError(f"{str(path)!r} holds a {kind}, not a network; read it by posteriori.load")


def network_of_content(content: Content, arrays: dict[str, Array]) -> BayesianNetwork:
    """Return the network of the content of a model file and its arrays."""
    return BayesianNetwork(**unpack(content["parameters"], arrays, place="parameters"))


_GZIP = b"\x1f\x8b"
_MOST_BYTES = 1 << 30  # of unpacked text: a small .gz may unpack to more than fits in memory
_OWN = ".posteriori"
FORMATS = [BIF, XMLBIF, NET, DNE, XDSL, UAI, JSON, DOT]
_BEFORE_WORD = re.compile(r"(?:\s+|%[^\n]*|//[^\n]*|/\*.*?\*/)*", re.DOTALL)


def read_network(
    path: str | os.PathLike[str], *, tolerance: float | None = None, max_table_size: int | None = None
) -> BayesianNetwork:
    """Read a Bayesian network from a file: BIF, XMLBIF, Hugin .net, Netica .dne, GeNIe .xdsl, UAI, JSON or .posteriori.

    Files that end in ``.posteriori`` are read by `posteriori.load`. The format of other files, and whether they are
    compressed by gzip, is detected from their content.

    Parameters
    ----------
    path : path
    tolerance : float, optional
        The largest difference from 1 that the sum of a row of a text file may have. By default, what rounding
        to the digits of the row explains, and at most 0.001, with a warning for differences above 1e-6. Accepted rows
        are divided by their sum.
    max_table_size : int, optional
        The most cells that one table, or the clique tables of exact inference together, may have: by default 2**27,
        or the value in a ``.posteriori`` file. See `BayesianNetwork`.

    Returns
    -------
    BayesianNetwork
        All states from text files are strings, as in the file, except from JSON; properties of BIF and XMLBIF are kept.
        Only discrete chance nodes are read from the formats of other tools.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        It is a folder, is malformed (the message has the line), is larger than 2**30 bytes, or holds another model.

    Warns
    -----
    UserWarning
        Row sums differ from 1 by more than 1e-6, and no tolerance was given.

    References
    ----------
    Cozman (1998), The Interchange Format for Bayesian Networks.

    Examples
    --------
    >>> import posteriori as po
    >>> po.read_network("asia.bif")  # doctest: +SKIP
    <BayesianNetwork 'asia': 8 variables, 8 edges, 18 parameters>
    """
    file = Path(path)
    shown = repr(str(file))
    if not file.exists():
        raise FileNotFoundError(f"there is no file {shown}")
    if file.is_dir():
        raise ValueError(f"{shown} is a folder; name the file of a network in it")
    if tolerance is not None and not 0 <= tolerance < math.inf:
        raise ValueError(f"tolerance is {tolerance!r}; it must be a number of at least 0")
    if max_table_size is not None:
        max_table_size = table_size(max_table_size)
    if file.suffix.lower() == _OWN or is_model_file(file):
        return _load(file, max_table_size)
    reading = Reading(shown, tolerance, MAX_TABLE_SIZE if max_table_size is None else max_table_size)
    network = _parsed(_content(file), reading)
    reading.warn()
    return network


def _content(file: Path) -> bytes:
    """Return the bytes of a file, unpacked."""
    shown = repr(str(file))
    with file.open("rb") as opened:
        content = _read_most(opened)
    if content[:2] == _GZIP:
        try:
            with gzip.GzipFile(fileobj=BytesIO(content)) as unpacked:
                content = _read_most(unpacked)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{shown} is compressed, and damaged or cut short: {error}") from None
    if len(content) > _MOST_BYTES:
        raise ValueError(f"{shown} holds more than {_MOST_BYTES:,} bytes; networks so large are kept as .posteriori")
    return content


def _read_most(opened: BufferedIOBase) -> bytes:
    """Return the content of a file, or its first bytes, a little more than _MOST_BYTES, so that memory is bounded."""
    content = bytearray()
    while len(content) <= _MOST_BYTES and (piece := opened.read(1 << 20)):
        content += piece
    return bytes(content)


def _reader_of(begin: str) -> Callable[[Any, Reading], BayesianNetwork] | None:
    """Return the reader of files that begin with a word; None if no format does."""
    return next((one.read for one in FORMATS if begin in one.begins), None)


def _parsed(content: bytes, reading: Reading) -> BayesianNetwork:
    begun = content.lstrip(b" \t\r\n")
    if begun[:4].removeprefix(b"\xef\xbb\xbf")[:1] == b"<":
        root = parse_xml(begun, reading.fail)
        read = _reader_of(f"<{root.tag}")
        if read is None:
            raise reading.fail(root.line, f"expected the element BIF, found {root.tag!r}")
        return read(root, reading)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise reading.fail(line, "this is no text in UTF-8; convert it") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.lstrip()[:1] == "{":
        return read_json(text, reading)
    start = _BEFORE_WORD.match(text)
    word = re.match(r"\w*", text[start.end() if start else 0 :][:16])
    return (_reader_of(word[0] if word else "") or read_bif)(text, reading)


def _load(file: Path, max_table_size: int | None) -> BayesianNetwork:
    loaded = read_model_file(file)
    if max_table_size is not None:
        loaded = BayesianNetwork(**(loaded.to_parameters() | {"max_table_size": max_table_size}))
    return loaded


def format_to_write(file: Path) -> tuple[Format | None, str, bool]:
    """Return the format that the ending of a file names, None for a model file; the ending; and whether .gz follows.

    Raises ValueError if the file has no ending of a network file.
    """
    suffixes = [suffix.lower() for suffix in file.suffixes]
    compressed = suffixes[-1:] == [".gz"]
    suffix = ["", *suffixes][-2 if compressed else -1]
    by_suffix = {ending: one for one in FORMATS for ending in one.suffixes}
    if suffix not in by_suffix and (suffix != _OWN or compressed):
        endings = ", ".join(by_suffix)
        raise ValueError(f"{str(file)!r} has no ending of a network file; use {endings} (.gz may follow) or {_OWN}")
    return by_suffix.get(suffix), suffix, compressed


def write_network(network: BayesianNetwork, path: str | os.PathLike[str]) -> None:
    """Write a Bayesian network to a file atomically: a temporary file is renamed, so that no partial file is left.

    Parameters
    ----------
    network : BayesianNetwork
        A network with all its tables. BIF and XMLBIF write numbers and booleans as text, so that these states are read
        back as strings; ``.posteriori`` keeps their types.
    path : path
        Its ending sets the format: ``.bif``; ``.xmlbif``, ``.bifxml`` (the only one that pyAgrum knows) or ``.xml`` for
        XMLBIF 0.3; ``.net`` (Hugin), ``.dne`` (Netica), ``.xdsl`` (GeNIe), ``.uai``; ``.json``, which keeps types and
        continuous variables; ``.dot``, the graph alone, for Graphviz; each followed by ``.gz`` to compress it; or
        ``.posteriori`` for the format of `posteriori.save`.

    Raises
    ------
    ValueError
        The path has another ending, a variable has no table, or a name cannot be written in the format.
    OSError
        The folder does not exist or is not writable, or the path is a folder.

    Notes
    -----
    Names and states that are no identifiers are written as identifiers in ``.net``, ``.dne`` and ``.xdsl``, with the
    true names beside them, so that they come back; properties too. UAI has neither.

    Examples
    --------
    >>> import posteriori as po, tempfile, pathlib
    >>> net = po.BayesianNetwork(variables=["coin"])
    >>> net.add_cpt("coin", {"heads": 0.5, "tails": 0.5})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     po.write_network(net, pathlib.Path(folder) / "coin.bif")
    ...     po.read_network(pathlib.Path(folder) / "coin.bif") == net
    True
    """
    file = Path(path)
    form, suffix, compressed = format_to_write(file)
    for name in network.variables:
        network.cpt(name)
    if form is None:
        write_model_file(network, file)
        return
    if network.gaussians and not form.continuous:
        name = network.gaussians[0].variable
        raise ValueError(
            f"{name!r} is continuous, which {suffix} cannot hold; write {_OWN} or .json, or cut it into intervals "
            "(--binned on the command line)"
        )
    try:
        content = form.write(network).encode()
    except UnicodeEncodeError as error:
        letter = error.object[error.start]
        raise ValueError(f"a name or property holds {letter!r}, which is no character of Unicode; rename it") from None
    write_whole(file, gzip.compress(content, mtime=0) if compressed else content)
