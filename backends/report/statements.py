"""Functions in the text of a Python file, and those of their statements that compute something.

The report marks a statement that no op of a graph came from. What never makes an op is left out: a name that is bound
to another, the head of a function, a docstring. Of a statement with a body only its head counts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import field

from ...records import dataclass

_COMPUTES = (ast.Call, ast.BinOp, ast.Await)
_SIMPLE = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Delete)


@dataclass
class Function:
    """Lines of an outermost function or method, counted from 1, and the statements in it, `(first line, last line)`."""

    first: int
    last: int
    statements: list[tuple[int, int]] = field(default_factory=list)


def functions_of(text: str) -> list[Function]:
    """The functions of a file in order; none for a text that is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    return [_function(node) for node in _outermost(tree)]


def _outermost(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        elif isinstance(child, ast.stmt):
            yield from _outermost(child)


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    found = Function(first, node.end_lineno or node.lineno)
    for child in ast.walk(node):
        lines = _lines_of(child)
        if lines is not None:
            found.statements.append(lines)
    found.statements.sort()
    return found


def _lines_of(node: ast.AST) -> tuple[int, int] | None:
    """The lines of a statement that may make ops, and has no statements inside."""
    if isinstance(node, _SIMPLE):
        if isinstance(node, ast.AugAssign) or _computes(node):
            return node.lineno, node.end_lineno or node.lineno
    elif isinstance(node, ast.If | ast.While) and _computes(node.test):
        return node.lineno, node.test.end_lineno or node.lineno
    elif isinstance(node, ast.For) and _computes(node.iter):
        return node.lineno, node.iter.end_lineno or node.lineno
    return None


def _computes(node: ast.AST) -> bool:
    return any(isinstance(inner, _COMPUTES) for inner in ast.walk(node))
