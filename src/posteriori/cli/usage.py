"""Errors in the use of commands: which command they are of, and where an option that it lacks belongs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Options of many programs, and of earlier versions, and what does the same here.
_INSTEAD = {
    "--drop": "--ignore",
    "--exclude": "--ignore",
    "--keep": "--column A,B=keep",
    "--text": "--column A,B=text",
    "--poisson": "--column A,B=poisson",
    "--binned": "--column A,B=binned",
    "--numeric": "--column A,B=gaussian",
    "--delimiter": "--sep",
    "--separator": "--sep",
    "--label": "--target",
    "--out": "--output",
}
_WITH_SETTINGS = "posteriori fit"


def sentence_of_usage(error: Any, arguments: Sequence[str], command: Any) -> str:
    """Return the message of an error that the parser of the command line raised, with where to read on."""
    words, command = _command_of(arguments, command)
    option = getattr(error, "option_name", "")
    if type(error).__name__ == "NoSuchOption" and (instead := _instead_of(option, words, command)):
        return f"{words} has no option {option}; {instead}"
    message = error.format_message().replace("Value error, ", "").removesuffix(".")  # pydantic's words
    return f"{message[:1].lower()}{message[1:]} (see {words} --help)"


def _command_of(arguments: Sequence[str], command: Any) -> tuple[str, Any]:
    """Return the command that arguments name, and its words, such as "posteriori network learn"."""
    words = ["posteriori"]
    for word in arguments:
        known = getattr(command, "commands", {})
        if word not in known:
            break
        words.append(word)
        command = known[word]
    return " ".join(words), command


def _instead_of(option: str, words: str, command: Any) -> str:
    """Return the replacement of an option that a command lacks; empty if nothing is known to do the same."""
    from posteriori.cli.options import parameters_of, settable_models, settings_of

    known = _options_of(command)
    if (instead := _INSTEAD.get(option, "")) and instead.partition(" ")[0] in known:
        return f"use {instead}"
    name = next(iter(settings_of([f"{option.removeprefix('--')}=x"])), "")
    if option == "--set" or any(name in parameters_of(one) for one in settable_models()):
        if words == _WITH_SETTINGS:
            return f"use --set {name}=VALUE (--set help lists what a model has)"
        if words in ("posteriori cv", "posteriori compare"):
            return f"it takes models with their defaults; {_WITH_SETTINGS} --set NAME=VALUE sets a parameter of one"
    return ""


def _options_of(command: Any) -> list[str]:
    return [option for parameter in getattr(command, "params", []) for option in parameter.opts]
