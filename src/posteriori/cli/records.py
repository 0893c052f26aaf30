"""Options of commands as records, whose fields are declared once, with the kinds of models that each is for."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar, cast, get_type_hints

from posteriori.cli.messages import UserError

Record = TypeVar("Record")
Command = Callable[..., None]


@dataclass(frozen=True, eq=False)
class For:
    """A kind of model (or of its rows) that an option needs, and what is true of one of another kind, in words."""

    models: str
    otherwise: str


CLASSES = For("classes", "predicts a number")
NUMBERS = For("numbers", "predicts classes")
ONE_COLUMN = For("models of one column", "is a joint model")
JOINT = For("joint models", "is of one column")


def parameters_of(record: type) -> list[inspect.Parameter]:
    """Return the options of a record as parameters of a command."""
    hints = get_type_hints(record, include_extras=True)
    return [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
        for one in fields(record)
    ]


def gathered(record: type[Record], arguments: dict[str, Any]) -> Record:
    """Return a record of its options, which are taken out of the arguments of a command."""
    names = [one.name for one in fields(cast(Any, record))]
    return record(**{name: arguments.pop(name) for name in names if name in arguments})


def with_parameters(run: Command, parameters: Iterable[inspect.Parameter]) -> Command:
    """Return a command that wraps another one with other parameters."""
    command: Any = run
    command.__signature__ = inspect.Signature(list(parameters))
    del command.__wrapped__
    command.__annotations__ = {name: one.annotation for name, one in command.__signature__.parameters.items()}
    return cast(Command, command)


def with_records(command: Command) -> Command:
    """Return a command with the options of its records as single parameters, as the parser needs them."""
    parameters = inspect.signature(command, eval_str=True).parameters
    types = {name: one.annotation for name, one in parameters.items() if isinstance(one.annotation, type)}
    records = {name: record for name, record in types.items() if is_dataclass(record)}

    @functools.wraps(command)
    def run_command(*arguments: Any, **options: Any) -> None:
        made = {name: gathered(record, options) for name, record in records.items()}
        command(*arguments, **options, **made)

    single = ([one] if name not in records else parameters_of(records[name]) for name, one in parameters.items())
    return with_parameters(run_command, [one for several in single for one in several])


def stated_options(record: Any) -> Iterator[tuple[str, list[For]]]:
    """Yield the options of a record that are not at their defaults, with the kinds of models that they need."""
    for one in parameters_of(type(record)):
        if getattr(record, one.name) != one.default:
            metadata = one.annotation.__metadata__
            option = next(data for data in metadata if not isinstance(data, For))
            names = [option.default, *(option.param_decls or ())]  # of an annotation, the first name is in `default`
            long = [name for name in names if isinstance(name, str) and name.startswith("--")]
            name = long[0] if long else f"--{one.name.replace('_', '-')}"
            yield name, [data for data in metadata if isinstance(data, For)]


def usual_sentence(option: str, needed: For) -> str:
    """Return why an option is refused: the kind of model that it needs, and that of the model."""
    return f"{option} is for {needed.models}, and the model {needed.otherwise}; leave it out"


def refuse_unfit(
    records: Iterable[Any], kinds: Collection[For], sentence: Callable[[str, For], str] = usual_sentence
) -> None:
    """Raise UserError if an option is stated that needs a kind of model which is not among `kinds`."""
    for record in records:
        for option, needs in stated_options(record):
            for needed in needs:
                if needed not in kinds:
                    raise UserError(sentence(option, needed))
