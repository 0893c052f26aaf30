"""Networks in files: BIF and XMLBIF, plain or compressed."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

from posteriori.networks.bif import read_bif, write_bif
from posteriori.networks.cpt import ROUNDING
from posteriori.networks.network import BayesianNetwork
from posteriori.networks.xmlbif import read_xmlbif, write_xmlbif

_GZIP = b"\x1f\x8b"


def read_network(path: str | os.PathLike[str], *, tolerance: float = ROUNDING) -> BayesianNetwork:
    """Read a Bayesian network from a BIF or XMLBIF file; which of them, and whether compressed, its content tells.

    Parameters
    ----------
    path : path
    tolerance : float, default 1e-6
        By how much the probabilities of a row may miss the sum of 1. Such rows, rounded when the file was written,
        are divided by their sum.

    Returns
    -------
    BayesianNetwork
        All states are strings, as the file writes them; properties are kept.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        It is a folder, or malformed: the line is named.

    References
    ----------
    Cozman (1998), The Interchange Format for Bayesian Networks.

    Examples
    --------
    >>> import posteriori as po
    >>> po.read_network("asia.bif")  # doctest: +SKIP
    <BayesianNetwork 'asia': 8 variables, 8 edges, 18 parameters>
    """
    place = Path(path)
    shown = repr(str(place))
    if not place.exists():
        raise FileNotFoundError(f"there is no file {shown}")
    if place.is_dir():
        raise ValueError(f"{shown} is a folder; name the file of a network in it")
    content = place.read_bytes()
    if content[:2] == _GZIP:
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{shown} is compressed, and damaged or cut short: {error}") from None

    def fail(line: int, problem: str) -> Exception:
        return ValueError(f"{shown}, line {line}: {problem}")

    if content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<":
        return read_xmlbif(content.lstrip(b" \t\r\n"), fail, tolerance)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fail(content.count(b"\n", 0, error.start) + 1, "this is no text in UTF-8; convert it") from None
    return read_bif(text.replace("\r\n", "\n").replace("\r", "\n"), fail, tolerance)


def write_network(network: BayesianNetwork, path: str | os.PathLike[str]) -> None:
    """Write a Bayesian network to a file, beside it first and then renamed, so that no half file is left.

    Parameters
    ----------
    network : BayesianNetwork
        With all its tables. States that are numbers or booleans are written as words and come back as strings;
        `posteriori.save` keeps them.
    path : path
        Ending in ``.bif``, or in ``.xmlbif`` or ``.xml`` for XMLBIF 0.3; and in ``.gz`` after that to compress it.

    Raises
    ------
    ValueError
        The path ends in nothing of these, a variable has no table, or a name cannot be written in the format.
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
    from posteriori.persistence import write_beside

    place = Path(path)
    suffixes = [suffix.lower() for suffix in place.suffixes]
    compressed = suffixes[-1:] == [".gz"]
    suffix = ["", *suffixes][-2 if compressed else -1]
    writers = {".bif": write_bif, ".xmlbif": write_xmlbif, ".xml": write_xmlbif}
    if suffix not in writers:
        raise ValueError(f"{str(place)!r} does not say the format; end it in .bif, .xmlbif or .xml, and .gz after that")
    for name in network.variables:
        network.cpt(name)
    content = writers[suffix](network).encode()
    write_beside(place, gzip.compress(content, mtime=0) if compressed else content)
