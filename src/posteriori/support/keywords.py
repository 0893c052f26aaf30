"""Unknown keywords and methods: each error names the place where the library takes what was meant."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar, cast

from posteriori.support.suggestions import closest

Call = TypeVar("Call", bound=Callable[..., Any])
Wanted = Mapping[str, tuple[tuple[str, str], ...]]


def explain_unknown_keywords(call: Call, groups: Mapping[str, type], wanted: Wanted) -> Call:
    """Return a function or constructor whose TypeError for an unknown keyword names the right place in one sentence.

    Its signature stays that of `call`: `inspect.signature` and scikit-learn's `clone` follow ``__wrapped__``. A
    function of any keywords (``**keywords``) is returned as it is.

    Parameters
    ----------
    call : function, or the method `__init__` of a class
    groups : mapping from the name of a parameter to the class of its value
        A keyword that is a parameter of such a value belongs there.
    wanted : mapping
        The advice for keywords of other libraries: for each the parameters that do the same, in order of preference,
        and how to write it. The first that `call` has is named.
    """
    parameters = inspect.signature(call).parameters
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return call
    known = [name for name in parameters if name != "self"]

    @functools.wraps(call)
    def checked(*args: Any, **keywords: Any) -> Any:
        for name in keywords:
            if name not in known:
                title = type(args[0]).__name__ if call.__name__ == "__init__" else call.__name__
                raise TypeError(f"{title} has no parameter {name!r}; {_advice(name, known, groups, wanted)}")
        return call(*args, **keywords)

    return cast(Call, checked)


class Elsewhere:
    """A method that people look for in an object, whose AttributeError names what does the same in this library."""

    def __init__(self, advice: str) -> None:
        self._advice = advice

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no method {self._name!r}; {self._advice}")


def _advice(name: str, known: Sequence[str], groups: Mapping[str, type], wanted: Wanted) -> str:
    """Return advice on an unknown keyword: the parameter that does the same."""
    for group, kind in groups.items():
        if group in known and name in inspect.signature(kind).parameters:
            return f"use {group}=po.{kind.__name__}({name}=…)"
    for parameter, advice in wanted.get(name, ()):
        if parameter in known:
            return advice
    return closest(name, known, "parameters")
