"""The command query: probabilities, the most probable configuration, trails, and a picture of a network."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.comparison import picture_at
from posteriori.cli.messages import UserError, as_user_errors
from posteriori.cli.models import read_model
from posteriori.cli.network import ENDINGS, MaxTableSize, Tolerance, asking, load_network, states_of
from posteriori.cli.options import AsJson, DrawSeed, Force
from posteriori.cli.records import For, refuse_unfit
from posteriori.registry import Subject

if TYPE_CHECKING:
    from posteriori.networks import BayesianNetwork
    from posteriori.networks.inference.distributions import Distribution

_ALL = "P(*)"
_SAMPLES = 10_000


class Method(StrEnum):
    """Algorithm of inference."""

    exact = "exact"
    conditioning = "conditioning"
    sampling = "sampling"


_NETWORKS = For("networks", "is a model of rows")


@dataclass(frozen=True)
class _NetworkOptions:
    """How a network answers, and what it shows beside the answer."""

    mpe: Annotated[
        bool,
        typer.Option("--mpe", help="Show the most probable configuration of all variables given the evidence."),
        _NETWORKS,
    ] = False
    why: Annotated[
        bool,
        typer.Option("--why", help="Show the trails between the variable asked for and each piece of evidence."),
        _NETWORKS,
    ] = False
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the network given the evidence: .png, .svg or .pdf."),
        _NETWORKS,
    ] = None
    method: Annotated[
        Method,
        typer.Option(
            help="exact: junction tree. conditioning: exact, for large networks. sampling: likelihood weighting."
        ),
        _NETWORKS,
    ] = Method.exact
    samples: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of samples of likelihood weighting."), _NETWORKS
    ] = _SAMPLES
    seed: Annotated[DrawSeed, _NETWORKS] = None
    tolerance: Annotated[Tolerance, _NETWORKS] = None
    max_table_size: Annotated[MaxTableSize, _NETWORKS] = None


def query(
    network: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help=f"A network, {ENDINGS}; or a model that fit saved.", show_default=False),
    ],
    question: Annotated[
        str,
        typer.Argument(metavar="[EXPRESSION]", help='For example "P(lung | smoke=yes)". Default: P(*), all marginals.'),
    ] = _ALL,
    *,
    options: _NetworkOptions,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Answer a question about a network, a joint model, or any column of a classifier.

    P(a, b | c=yes) is a table of all states of a and b; P(a=yes, b=no | c=yes) is one number; in P(a | do(c=yes)) c is
    set from outside; P(* | c=yes) is a table of all marginals. Put names and states with spaces, commas or signs such
    as = into quotes.

    Of a joint model, which fit makes without --target, and of a classifier that is one model, a condition is =, !=, <,
    <=, >, >= and a value, a range (a in [30, 40], or a = 30..40) or several values (c in (x, y)). Dates are stated as
    in day > 2024-03-01. Columns that stand alone have one table each. A joint model prints the
    standard error and the number of training rows that are as given. All options except --json are for networks.

    Example:

        posteriori query penguins.bif "P(species | island=Dream, sex=male)"

        posteriori query penguins.bif "P(* | island=Dream)" --mpe --picture penguins.png

        posteriori query penguins.joint.posteriori "P(sex | species = Adelie, body_mass_g > 4000)"
    """
    if (model := _model_of_rows(network)) is not None:
        refuse_unfit([options], ())
        _answer_jointly(model, network, question, as_json)
        return
    picture = options.picture
    place = None if picture is None else picture_at(picture, network, force, "--picture")
    net = load_network(network, options.tolerance, options.max_table_size)

    from posteriori.joint.questions import Variables, read_question

    with asking(network):
        asked = read_question(question, Variables(list(net.variables)))
        if options.why and (len(asked.asked) != 1 or asked.everything or not (asked.given or asked.done)):
            raise UserError("--why explains the dependence of one variable on evidence; write P(a | b=x)")
        given, done = states_of(net, asked.given), states_of(net, asked.done)
        wanted = {} if asked.everything else states_of(net, asked.asked)
        net = net.do(done) if done else net
        answer = net.query(
            *wanted, evidence=given, method=options.method.value, n_samples=options.samples, random_state=options.seed
        )
        best = net.most_probable(given) if options.mpe else None
        trails = _trails(net, next(iter(wanted)), [*given, *done]) if options.why else []
        if place is not None:
            with place.writing() as path:
                _draw(net, given, path)
    found: dict[str, Any] = {
        "command": "query",
        "network": str(network),
        "question": question,
        "given": given,
        "do": done,
        "method": options.method.value,
    }
    found |= _answered(answer, wanted if asked.is_event else None)
    if best is not None:
        found["most_probable"] = best.states
        found["log_probability"] = best.log_probability - best.log_evidence
    if options.why:
        found["why"] = trails
    if picture is not None:
        found["picture"] = str(picture)
    from posteriori.cli import answer_page, tables

    if as_json:
        tables.print_json(found)
        return
    answer_page.print_network_answer(found, asked.is_event)
    answer_page.print_more(best, trails, picture)


def _model_of_rows(path: Path) -> Any:
    """Return the model in a file if it is of rows and answers about any column; None otherwise."""
    from posteriori.model_files import is_model_file

    if not path.is_file() or not is_model_file(path):
        return None
    model = read_model(path)
    return model if model.subject is not Subject.VARIABLES and hasattr(model, "query") else None


def _answer_jointly(model: Any, path: Path, question: str, as_json: bool) -> None:
    """Print the answer of a joint model, a classifier or a mixture."""
    from posteriori.cli import answer_page, tables
    from posteriori.facts.joint import joint_answer

    with as_user_errors():
        answer = joint_answer(model, question)
    found = {"command": "query", "model": str(path), "question": question, **answer}
    (tables.print_json if as_json else answer_page.print_answer)(found)


def _trails(net: BayesianNetwork, target: str, known: Sequence[str]) -> list[str]:
    """Return the trails to each variable that was seen or set, in the graph that do() leaves; both block trails."""
    return [str(net.active_trails(target, name, [other for other in known if other != name])) for name in known]


def _answered(answer: Any, event: dict[str, Any] | None) -> dict[str, Any]:
    """Return an answer as facts: marginals, the cells of a table (of an event one), or a density."""
    if isinstance(answer, Mapping):
        return {"marginals": {name: _listed(marginal) for name, marginal in answer.items()}}
    if not hasattr(answer, "probabilities"):
        return {"density": str(answer)}
    cells = [
        {"states": states, "probability": p, "standard_error": error}
        for states, p, error in _cells(answer)
        if event is None or states == event
    ]
    return {"answer": cells}


def _draw(net: BayesianNetwork, given: dict[str, Any], path: Path) -> None:
    from posteriori.plotting import plot_network
    from posteriori.support.atomic_write import atomic_write

    figure: Any = plot_network(net, given).figure
    with atomic_write(path) as written:
        figure.savefig(written, format=path.suffix[1:].lower(), dpi=120, bbox_inches="tight")


def _listed(marginal: Any) -> Any:
    """Return the probabilities by state, or mean and standard deviation of a continuous variable."""
    return {str(state): p for state, p in marginal.to_dict().items()}


def _cells(answer: Distribution) -> Iterator[tuple[dict[str, Any], float, float | None]]:
    """Yield each configuration of a distribution with its probability and standard error."""
    probabilities = answer.probabilities.ravel().tolist()
    errors = [None] * len(probabilities) if answer.standard_errors is None else answer.standard_errors.ravel().tolist()
    for states, p, error in zip(itertools.product(*answer.states.values()), probabilities, errors, strict=True):
        yield dict(zip(answer.states, states, strict=True)), p, error
