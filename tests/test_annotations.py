"""Functions on an estimator state its type, so that mypy checks what they read of it."""

import ast

from tests.test_layers import trees


def untyped(tree):
    """Return the names of functions whose first argument is an estimator of any type."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    first = {one.name: [a for a in one.args.args if a.arg not in ("self", "cls")][:1] for one in functions}
    return [
        name
        for name, arguments in first.items()
        for one in arguments
        if one.arg == "estimator" and one.annotation is not None and ast.unparse(one.annotation) == "Any"
    ]


def test_no_function_takes_an_estimator_of_any_type():
    assert {name: found for name, tree in trees().items() if (found := untyped(tree))} == {}


def test_an_estimator_of_any_type_is_found():
    assert untyped(ast.parse("class A:\n    def f(self, estimator: Any): ...\ndef g(estimator: B, x: Any): ...")) == [
        "f"
    ]
