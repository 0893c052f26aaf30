"""Former names that still work for one minor version, with a `FutureWarning` that gives the new name.

There is one tool per kind of name:

- `Renamed`: a method, a fitted attribute or a property of a class;
- `renamed_parameters`: parameters of the constructor of an estimator;
- `renamed_keywords`: keywords of a function or method;
- `renamed_module_attributes`: names of a module, moved or renamed.

To remove the former names of a version, search for these four. Model files are not covered: their former names stay in
`persistence.py`, because files outlive aliases.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

REMOVED_IN = "0.3"

_C = TypeVar("_C", bound=type[Any])
_F = TypeVar("_F", bound=Callable[..., Any])


def warn_renamed(old: str, new: str, *, stacklevel: int = 2) -> None:
    """Warn that a name has changed.

    Parameters
    ----------
    old, new : str
        The names as a user writes them, such as ``NaiveBayes.forget``.
    stacklevel : int, default 2
        As in `warnings.warn`, counted from the caller of this function: 2 is the line that called the caller.

    Warns
    -----
    FutureWarning
        With the new name and the version that removes the old one.
    """
    message = f"{old} is now {new}; the old name will be removed in version {REMOVED_IN}"
    warnings.warn(message, FutureWarning, stacklevel=stacklevel + 1)


class Renamed:
    """Former name of a method or an attribute; assign it in the class body: ``forget = Renamed("unlearn")``.

    Instances read and write the attribute of the new name, with a warning. On the class itself the descriptor is
    returned without a warning, because `help` and other tools read every attribute of a class.

    Parameters
    ----------
    new : str
        The new name, in the same class.
    """

    def __init__(self, new: str) -> None:
        self.new = new
        self.__doc__ = f"Former name of `{new}`."

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._old = name

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        value = getattr(instance, self.new)  # first, so that hasattr does not warn where the attribute is absent
        self._warn(instance)
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        self._warn(instance)
        setattr(instance, self.new, value)

    def _warn(self, instance: Any) -> None:
        name = type(instance).__name__
        warn_renamed(f"{name}.{self._old}", f"{name}.{self.new}", stacklevel=3)


def renamed_parameters(**new_names: str) -> Callable[[_C], _C]:
    """Return a class decorator that accepts former names of constructor parameters, with a warning.

    The constructor, `set_params` (nested in a pipeline, too) and the attribute accept the former name. The signature,
    `get_params` and `clone` know the new one only.

    Parameters
    ----------
    **new_names : str
        The new name of each former one: ``renamed_parameters(weights="feature_weights")``.

    Raises
    ------
    TypeError
        When the class is used: both names of one parameter are given.
    """

    def decorate(cls: _C) -> _C:
        for method in ("__init__", "set_params"):
            setattr(cls, method, _with_new_names(getattr(cls, method), new_names, lambda args: type(args[0]).__name__))
        for old, new in new_names.items():
            alias = Renamed(new)
            alias.__set_name__(cls, old)
            setattr(cls, old, alias)
        return cls

    return decorate


def renamed_keywords(**new_names: str) -> Callable[[_F], _F]:
    """Return a decorator of functions that accepts former names of keywords, with a warning.

    Parameters
    ----------
    **new_names : str
        The new name of each former one.

    Raises
    ------
    TypeError
        When the function is called: both names of one keyword are given.
    """

    def decorate(function: _F) -> _F:
        return _with_new_names(function, new_names, lambda _: function.__qualname__)

    return decorate


def _with_new_names(function: _F, new_names: Mapping[str, str], name_of: Callable[[tuple[Any, ...]], str]) -> _F:
    """Return the function with former names of keywords translated; `name_of` takes the positional arguments.

    `functools.wraps` keeps the signature, from which scikit-learn reads the names of parameters.
    """

    @functools.wraps(function)
    def translated(*args: Any, **keywords: Any) -> Any:
        for old in new_names.keys() & keywords.keys():
            new, name = new_names[old], name_of(args)
            if new in keywords:
                raise TypeError(f"{name} got both {old!r} and {new!r}, its new name; give {new!r} only")
            warn_renamed(f"the parameter {old!r} of {name}", repr(new))
            keywords[new] = keywords.pop(old)
        return function(*args, **keywords)

    return cast(_F, translated)


def renamed_module_attributes(module: str, new_names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module whose names have moved or changed.

    Parameters
    ----------
    module : str
        The ``__name__`` of the module.
    new_names : mapping from str to str
        The full new name of each former one: ``{"why": "posteriori.networks.active_trails"}``. It is imported on use.
    """

    def getattr_of_module(name: str) -> Any:
        if name not in new_names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, new = new_names[name].rpartition(".")
        warn_renamed(f"{module}.{name}", new_names[name])
        return getattr(importlib.import_module(home), new)

    return getattr_of_module
