"""Networks in files: BIF and XMLBIF, plain or compressed, and model files."""

from __future__ import annotations

import gzip
import math
import os
import zlib
from io import BufferedIOBase, BytesIO
from pathlib import Path

from posteriori.networks.arguments import table_size
from posteriori.networks.bif import read_bif, write_bif
from posteriori.networks.network import BayesianNetwork
from posteriori.networks.reading import MAX_TABLE_SIZE, Reading
from posteriori.networks.xmlbif import read_xmlbif, write_xmlbif

_GZIP = b"\x1f\x8b"
_MOST_BYTES = 1 << 30  # of text, after it is unpacked: a small .gz may hold more than fits in memory
_OWN = ".posteriori"
_WRITERS = {".bif": write_bif, ".xmlbif": write_xmlbif, ".bifxml": write_xmlbif, ".xml": write_xmlbif}


def read_network(
    path: str | os.PathLike[str], *, tolerance: float | None = None, max_table_size: int | None = None
) -> BayesianNetwork:
    """Read a Bayesian network from a BIF or XMLBIF file, or from one that `posteriori.save` wrote.

    Files ending in ``.posteriori`` are read as `posteriori.load` reads them. Of all others the content tells the
    format, and whether it is compressed by gzip.

    Parameters
    ----------
    path : path
    tolerance : float, optional
        By how much the probabilities of a row of a BIF or XMLBIF file may differ from 1 in sum. By default by what
        rounding to the digits of the row explains, and at most 0.001; rows that differ by more than 1e-6 are then
        warned of. Rows that are accepted are divided by their sum.
    max_table_size : int, optional
        The most cells that one table, or the clique tables of exact inference together, may have: 2**27 by default,
        or what a ``.posteriori`` file says. See `BayesianNetwork`.

    Returns
    -------
    BayesianNetwork
        From BIF and XMLBIF all states are strings, as the file writes them; properties are kept.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        It is a folder, malformed (the line is named), larger than 2**30 bytes, or holds a model that is no network.

    Warns
    -----
    UserWarning
        Rows were divided by sums that differ from 1 by more than 1e-6, and no tolerance was given.

    References
    ----------
    Cozman (1998), The Interchange Format for Bayesian Networks.

    Examples
    --------
    >>> import posteriori as po
    >>> po.read_network("asia.bif")  # doctest: +SKIP
    <BayesianNetwork 'asia': 8 variables, 8 edges, 18 parameters>
    """
    position = Path(path)
    shown = repr(str(position))
    if not position.exists():
        raise FileNotFoundError(f"there is no file {shown}")
    if position.is_dir():
        raise ValueError(f"{shown} is a folder; name the file of a network in it")
    if tolerance is not None and not 0 <= tolerance < math.inf:
        raise ValueError(f"tolerance is {tolerance!r}; it must be a number of at least 0")
    if max_table_size is not None:
        max_table_size = table_size(max_table_size)
    if position.suffix.lower() == _OWN:
        return _load(position, max_table_size)
    reading = Reading(shown, tolerance, MAX_TABLE_SIZE if max_table_size is None else max_table_size)
    network = _parsed(_content(position), reading)
    reading.warn()
    return network


def _content(position: Path) -> bytes:
    """Return the bytes of a file, unpacked."""
    shown = repr(str(position))
    with position.open("rb") as opened:
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
    """Return what a file holds, or a little more than _MOST_BYTES of it, and take no more memory than that."""
    content = bytearray()
    while len(content) <= _MOST_BYTES and (piece := opened.read(1 << 20)):
        content += piece
    return bytes(content)


def _parsed(content: bytes, reading: Reading) -> BayesianNetwork:
    begun = content.lstrip(b" \t\r\n")
    if begun[:4].removeprefix(b"\xef\xbb\xbf")[:1] == b"<":
        return read_xmlbif(begun, reading)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise reading.fail(line, "this is no text in UTF-8; convert it") from None
    return read_bif(text.replace("\r\n", "\n").replace("\r", "\n"), reading)


def _load(position: Path, max_table_size: int | None) -> BayesianNetwork:
    from posteriori.persistence import load

    loaded = load(position)
    if not isinstance(loaded, BayesianNetwork):
        raise ValueError(
            f"{str(position)!r} holds a {type(loaded).__name__}, not a network; read it by posteriori.load"
        )
    if max_table_size is not None:
        loaded = BayesianNetwork(**(loaded.to_parameters() | {"max_table_size": max_table_size}))
    return loaded


def write_network(network: BayesianNetwork, path: str | os.PathLike[str]) -> None:
    """Write a Bayesian network to a file, beside it first and then renamed, so that no half file is left.

    Parameters
    ----------
    network : BayesianNetwork
        With all its tables. In BIF and XMLBIF states that are numbers or booleans are written as words and come back
        as strings; ``.posteriori`` keeps them.
    path : path
        Ending in ``.bif``; in ``.xmlbif``, ``.bifxml`` (the only ending that pyAgrum knows) or ``.xml`` for XMLBIF 0.3;
        both followed by ``.gz`` to compress it; or in ``.posteriori``, as `posteriori.save` writes.

    Raises
    ------
    ValueError
        The path has another ending, a variable has no table, or a name cannot be written in the format.
    OSError
        The folder does not exist or cannot be written to, or the path is that of a folder.

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
    from posteriori.persistence import save, write_file_atomically

    position = Path(path)
    suffixes = [suffix.lower() for suffix in position.suffixes]
    compressed = suffixes[-1:] == [".gz"]
    suffix = ["", *suffixes][-2 if compressed else -1]
    own = suffix == _OWN and not compressed
    if suffix not in _WRITERS and not own:
        endings = ", ".join(_WRITERS)
        raise ValueError(f"{str(position)!r} does not say the format; end it in {endings} (.gz may follow) or {_OWN}")
    for name in network.variables:
        network.cpt(name)
    if own:
        save(network, position)
        return
    try:
        content = _WRITERS[suffix](network).encode()
    except UnicodeEncodeError as error:
        letter = error.object[error.start]
        raise ValueError(f"a name or property holds {letter!r}, which is no character of Unicode; rename it") from None
    write_file_atomically(position, gzip.compress(content, mtime=0) if compressed else content)
