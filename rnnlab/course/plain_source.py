"""The source of functions of :mod:`rnnlab.plain` as the exercises call them.

Exercises pass no options. Code that only options need, such as the masks of padding, is removed from the
source: students do not write it, so no mistake is planted there and no message mentions it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import FunctionType
from typing import Any

__all__ = ["definition_of"]

# The values of expressions if all steps and slots are real and all options are left out.
_WITHOUT_OPTIONS = {
    "lengths is None": "True",
    "mask is None": "True",
    "memory_mask is None": "True",
    "c0 is None": "True",
    "h0 is None": "False",
    "u is None": "False",
    "score == 'additive'": "True",
    "score == 'bilinear'": "False",
    "dweights is None": "True",
    "detach_target": "False",
    "not detach_target": "True",
    "label_smoothing": "0",
    "m[t]": "1",
    "real_steps(lengths, N, T).swapaxes(0, 1)": "1",
    "e.max(axis=1, keepdims=True, where=mask, initial=-1e+300)": (
        "e.max(axis=1, keepdims=True, initial=-1e300)"
    ),
    "np.exp(e - largest, where=mask, out=np.zeros(e.shape))": "np.exp(e - largest)",
    "np.maximum(exp_e.sum(axis=1, keepdims=True), 1)": "exp_e.sum(axis=1, keepdims=True)",
    "max(M, 1)": "M",
    "np.einsum('nt,ntl->nl', m, weights)": "weights.sum(axis=1)",
    "m[:, :, None]": "np.ones((1, T, 1))",
    "counts": "1",
    "m.any(axis=1)[:, None]": "1",
}


def definition_of(function: FunctionType) -> ast.FunctionDef:
    """The syntax tree of a function, without the code for options."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.body = [each for one in definition.body for each in _listed(_Without().visit(one))]
    return ast.fix_missing_locations(definition)


class _Without(ast.NodeTransformer):
    """Inserts the values of options, and removes code that then has no effect."""

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store):
            known = _WITHOUT_OPTIONS.get(ast.unparse(node))
            if known is not None:
                return ast.copy_location(ast.parse(known, mode="eval").body, node)
        return super().visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return {True: node.body, False: node.orelse}.get(_constant(node.test), node)

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        self.generic_visit(node)
        return {True: node.body, False: node.orelse}.get(_constant(node.test), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        match node.op, _constant(node.left), _constant(node.right):
            case (ast.Mult(), 1, _) | (ast.Add(), 0, _):
                return node.right
            case (ast.Mult() | ast.Div(), _, 1) | (ast.Add() | ast.Sub(), _, 0):
                return node.left
            case (ast.Mult() | ast.Div(), 0, _) | (ast.Mult(), _, 0) | (ast.Sub(), 1, 1):
                return ast.copy_location(ast.Constant(0), node)
        return node


def _constant(node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else None


def _listed(made: Any) -> list[ast.stmt]:
    return made if isinstance(made, list) else [made]
