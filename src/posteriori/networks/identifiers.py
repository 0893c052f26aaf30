"""Names and states in formats that allow identifiers only."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

from posteriori.networks.cpt import CPT
from posteriori.networks.naming import first_repeated

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def identifiers(what: str, names: Sequence[str], suffix: str) -> dict[str, str]:
    """Return an identifier for each name: the name itself if it is one.

    Warns
    -----
    UserWarning
        A name is no identifier, so that another one is written.
    """
    found: dict[str, str] = {name: name for name in names if _IDENTIFIER.fullmatch(name)}
    taken = set(found)
    changed = []
    for name in names:
        if name in found:
            continue
        base = re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"
        base = base if base[0].isalpha() else f"n{base}"
        candidate, k = base, 2
        while candidate in taken:
            candidate, k = f"{base}_{k}", k + 1
        taken.add(candidate)
        found[name] = candidate
        changed.append(name)
    if changed:
        more = f" and {len(changed) - 1:,} more" if len(changed) > 1 else ""
        warnings.warn(
            f"{suffix} allows letters, digits and _ in names only: the {what} {changed[0]!r}{more} is written as "
            f"{found[changed[0]]!r}",
            UserWarning,
            stacklevel=5,
        )
    return found


def states_as_text(cpt: CPT) -> list[str]:
    """Return the states as text; ValueError if two have the same."""
    texts = [str(state) for state in cpt.states]
    if len(set(texts)) < len(texts):
        raise ValueError(f"two states of {cpt.variable!r} would both be written {first_repeated(texts)!r}; rename one")
    return texts
