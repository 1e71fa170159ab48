"""Single changes of the source of a correct function that reproduce typical mistakes of students.

Each edit changes one place of the syntax tree: it drops, doubles or negates a term, drops a factor, removes a
transpose, sums over another axis, reads another variable, confuses two nonlinearities, swaps two blocks,
overwrites where it should add, or loops over time in the wrong direction.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import permutations
from types import CodeType
from typing import NamedTuple

ALPHA = "_alpha"  # the factor of a term, a variable of the edited function


class Edit(NamedTuple):
    """A node of the function, its replacement, and a message about the wrong result."""

    node: ast.AST
    new: ast.AST
    target: str  # the name of the computed value
    message: str
    scaled: str = ""  # the term that is multiplied by ALPHA; the message is then that of a factor of 0
    inner: bool = False  # inside a factor of the value; an edit of the whole factor is more likely


Naming = Callable[[int], str]  # the name of a result of the function, by its position
Alike = Callable[[str], Sequence[str]]  # the variables with the same shape as the given one


def edits(definition: ast.FunctionDef, result: Naming, alike: Alike) -> Iterator[Edit]:
    """All edits of a function.

    Parameters
    ----------
    definition : ast.FunctionDef
    result : callable
        The name of each of its results.
    alike : callable
        The variables that may be confused with a given one, because they have the same shape.
    """
    for statement, target, value in _values(definition, result):
        yield from _edits_of(value, target, partial(_both, _known(definition, statement), alike))
    yield from _edits_of_statements(definition)


def _both(known: set[str], alike: Alike, name: str) -> list[str]:
    return [each for each in alike(name) if each in known]


class Source:
    """A function that is compiled with one edit at a time.

    Parameters
    ----------
    definition : ast.FunctionDef
        Its nodes must have line numbers, like parsed ones.
    """

    def __init__(self, definition: ast.FunctionDef) -> None:
        self._definition = definition
        self._places: dict[ast.AST, tuple[ast.AST, str, int | None]] = {}  # parent, field, place in a list
        for parent in ast.walk(definition):
            for name, value in ast.iter_fields(parent):
                if isinstance(value, ast.AST):
                    self._places.setdefault(value, (parent, name, None))
                elif isinstance(value, list):
                    for place, each in enumerate(value):
                        if isinstance(each, ast.AST):
                            self._places.setdefault(each, (parent, name, place))

    def compiled(self, edit: Edit | None = None) -> CodeType:
        """The code of a module with only this function, unchanged or with an edit."""
        if edit is None:
            return self._compiled()
        ast.fix_missing_locations(edit.new)
        self._put(edit.node, edit.new)
        try:
            return self._compiled()
        finally:
            self._put(edit.node, edit.node)

    def _compiled(self) -> CodeType:
        return compile(ast.Module([self._definition], []), f"<{self._definition.name}>", "exec")

    def _put(self, node: ast.AST, new: ast.AST) -> None:
        """Replace a node by another one; passing the node itself undoes the replacement."""
        if node not in self._places:
            raise AssertionError(f"{self._definition.name} has no such node")
        parent, name, place = self._places[node]
        if place is None:
            setattr(parent, name, new)
        else:
            getattr(parent, name)[place] = new


# ---------------------------------------------------------------- where values are computed


def _values(definition: ast.FunctionDef, result: Naming) -> Iterator[tuple[ast.stmt, str, ast.expr]]:
    """The expressions of a function, each with its statement and the name of its value."""
    for statement in ast.walk(definition):
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                for target, value in zip(targets, values, strict=True):
                    yield statement, name_of(target), value
            case ast.Assign(targets=[ast.Tuple()], value=ast.Call(func=ast.Name(id=function)) as value):
                yield statement, f"the call of {function}", value
            case ast.Assign(targets=[target], value=value):
                yield from _parts(statement, name_of(target), value)
            case ast.Return(value=ast.expr() as value):
                results = value.elts if isinstance(value, ast.Tuple) else [value]
                for place, one in enumerate(results):
                    yield from _parts(statement, result(place), one)


def _parts(statement: ast.stmt, target: str, value: ast.expr) -> Iterator[tuple[ast.stmt, str, ast.expr]]:
    """A value or, for a dict, its values, which are gradients of parameters."""
    if isinstance(value, ast.Dict):
        for key, each in zip(value.keys, value.values, strict=True):
            yield statement, f"d{key.value!s}" if isinstance(key, ast.Constant) else target, each
    else:
        yield statement, target, value


def name_of(target: ast.expr) -> str:
    """The name of a target without its indices; for a tuple, the names separated by commas."""
    if isinstance(target, ast.Tuple):
        return ", ".join(map(name_of, target.elts))
    while isinstance(target, ast.Subscript | ast.Starred):
        target = target.value
    return ast.unparse(target)


def _known(definition: ast.FunctionDef, statement: ast.stmt) -> set[str]:
    """The variables that have a value when a statement is reached."""
    arguments = definition.args
    names = {each.arg for each in [*arguments.args, *arguments.kwonlyargs]}
    for each in ast.walk(definition):
        if isinstance(each, ast.Assign) and each.lineno < statement.lineno:
            for target in each.targets:
                names |= {*name_of(target).split(", ")}
    return names


# ---------------------------------------------------------------- expressions


def _edits_of(value: ast.expr, target: str, alike: Alike) -> Iterator[Edit]:
    zero = (
        f"{ast.unparse(value)} does not reach {target}: it is left out" if isinstance(value, ast.Name) else ""
    )
    yield Edit(value, _scaled(value), target, zero or f"{target} is zero", target)
    for name in alike(target):
        if name != target and name.startswith("d") == target.startswith("d"):
            yield Edit(
                value, _parsed(name), target, f"{target} has {name} where {ast.unparse(value)} belongs"
            )
    for name in {*alike("dnext_h"), *alike(target)} - {target} if target.startswith("d") else ():
        extra = ast.BinOp(value, ast.Add(), _parsed(name))
        yield Edit(value, extra, target, f"{target} has {name} as an extra term")
    complemented = {*filter(None, map(_complemented, ast.walk(value)))}
    for node in ast.walk(value):
        match node:
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                yield from _terms(node, value, target)
            case ast.BinOp(op=ast.MatMult(), left=left, right=right):
                if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mult):
                    outer = ast.BinOp(left.left, ast.Mult(), ast.BinOp(left.right, ast.MatMult(), right))
                    expected = f"({ast.unparse(left)}) @ {ast.unparse(right)}"  # unparse leaves brackets out
                    message = f"{target} has {ast.unparse(outer)} where {expected} belongs"
                    yield Edit(node, outer, target, message)
                yield Edit(node, _transposed(node), target, f"{target} is transposed")
                for operand in (left, right):
                    yield from _transposes(operand, target)
                if isinstance(left, ast.Attribute) and left.attr == "T":
                    last = f"{ast.unparse(left.value)}[-1:].T @ {ast.unparse(right)}[-1:]"
                    message = f"{target} is overwritten for each sample of the batch where the sum belongs"
                    yield Edit(node, _parsed(last), target, message)
            case ast.Attribute(value=ast.Name()) | ast.Name() if _is_read(node) and node not in complemented:
                yield from _other_names(node, target, alike)
            case ast.Call():
                yield from _calls(node, target)
            case ast.Subscript(slice=index):
                yield from _steps(index, target)
        yield from _complements(node, target, alike)
        yield from _factors(node, value, target)
        yield from _derivatives(node, target)


def _terms(node: ast.BinOp, value: ast.expr, target: str) -> Iterator[Edit]:
    """Edits of a term of a sum: it is missing, or has another factor."""
    for term in (node.left, node.right):
        if isinstance(term, ast.BinOp) and isinstance(term.op, ast.Add | ast.Sub):
            continue  # a longer sum, whose terms are visited separately
        text = ast.unparse(term)
        if text == target:
            message = f"{target} is overwritten at each step, where it should be added to"
            if target.startswith("dh") or target.startswith("dc"):
                message += ": the gradient from later steps is lost"
        elif isinstance(term, ast.Name | ast.Subscript):
            message = f"{text} does not reach {target}: it is left out"
        else:
            message = f"{target} lacks the term {text}"
        whole = "" if node is value else f" in {ast.unparse(node)}"
        yield Edit(term, _scaled(term), target, message + whole * (text != target), text, bool(whole))


def _factors(node: ast.AST, value: ast.expr, target: str) -> Iterator[Edit]:
    """Edits in which a factor of a product, a divisor, or a square is missing."""
    match node:
        case ast.BinOp(
            op=ast.Mult(), left=left, right=ast.Call(func=ast.Attribute(attr="tanh"), args=[inner])
        ):
            outer = _parsed(f"np.tanh({ast.unparse(left)} * {ast.unparse(inner)})")
            message = f"{target} has {ast.unparse(outer)} where {ast.unparse(node)} belongs"
            yield Edit(node, outer, target, message)
    match node:
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            for kept, dropped in ((right, left), (left, right)):
                if not (isinstance(dropped, ast.BinOp) and isinstance(dropped.op, ast.Mult)):
                    ones = _parsed(f"np.ones_like({ast.unparse(dropped)})")  # keeps the shape
                    without = ast.BinOp(kept, ast.Mult(), ones)
                    yield Edit(node, without, target, f"{target} lacks the factor {ast.unparse(dropped)}")
        case ast.BinOp(op=ast.Div(), left=left, right=right):
            yield Edit(node, left, target, f"{target} is not divided by {ast.unparse(right)}")
        case ast.BinOp(op=ast.Pow(), left=left, right=ast.Constant(value=2)):
            yield Edit(node, left, target, f"{target} has {ast.unparse(left)} where its square belongs")


def _derivatives(node: ast.AST, target: str) -> Iterator[Edit]:
    """Edits that confuse the derivatives of sigmoid and tanh."""
    match node:
        case ast.BinOp(
            op=ast.Sub(), left=ast.Constant(value=1), right=ast.BinOp(op=ast.Pow(), left=ast.Name() as y)
        ):
            name = y.id
            message = f"{target} has the derivative of a sigmoid where that of a tanh belongs, 1 - {name}**2"
            yield Edit(node, _parsed(f"{name} * (1 - {name})"), target, message)
            other = f"{target} has (1 - {name})**2 where 1 - {name}**2 belongs"
            yield Edit(node, _parsed(f"(1 - {name})**2"), target, other)
            twice = (
                f"{target} has the derivative of the tanh at {name}, which is the tanh already: 1 - {name}**2"
            )
            yield Edit(node, _parsed(f"1 - np.tanh({name})**2"), target, twice)
        case ast.BinOp(
            op=ast.Mult(),
            left=ast.BinOp(op=ast.Mult(), left=rest, right=ast.Name(id=name)),
            right=ast.BinOp(op=ast.Sub(), left=ast.Constant(value=1), right=ast.Name(id=other)),
        ) if name == other:
            belongs = f"{name} * (1 - {name})"
            message = f"{target} has the derivative of a tanh where that of a sigmoid belongs, {belongs}"
            yield Edit(node, ast.BinOp(rest, ast.Mult(), _parsed(f"1 - {name}**2")), target, message)
            yield Edit(node, rest, target, f"{target} lacks the derivative of the sigmoid, {belongs}")


def _transposes(operand: ast.expr, target: str) -> Iterator[Edit]:
    text = ast.unparse(operand)
    if isinstance(operand, ast.Attribute) and operand.attr == "T":
        without = ast.unparse(operand.value)
        yield Edit(operand, operand.value, target, f"{target} has {without} where {text} belongs")
        reshaped = _parsed(f"({without}).reshape(({without}).shape[::-1])")
        message = f"{target} has {without} reshaped where {text} belongs: the rows and columns are mixed up"
        yield Edit(operand, reshaped, target, message)
    else:
        yield Edit(operand, _transposed(operand), target, f"{target} has {text}.T where {text} belongs")


_FUNCTIONS = {"np.tanh": "tanh", "sigmoid": "sigmoid"}


def _calls(node: ast.Call, target: str) -> Iterator[Edit]:
    """Edits of calls: another nonlinearity or none, another axis, the mean, or blocks in another order."""
    function, keywords = ast.unparse(node.func), {each.arg: each.value for each in node.keywords}
    if function in _FUNCTIONS:
        inner = ast.unparse(node.args[0])
        other = next(name for name in _FUNCTIONS if name != function)
        sigmoid = f"1 / (1 + np.exp(-({inner})))"
        changed = _parsed(sigmoid if other == "sigmoid" else f"np.tanh({inner})")
        message = f"{target} has {_FUNCTIONS[other]} where {_FUNCTIONS[function]} belongs"
        yield Edit(node, changed, target, message)
        relu = f"{target} has a ReLU where {_FUNCTIONS[function]} belongs"
        yield Edit(node, _parsed(f"np.maximum(0, {inner})"), target, relu)
        yield Edit(node, node.args[0], target, f"{target} lacks the {_FUNCTIONS[function]} of {inner}")
    if isinstance(node.func, ast.Attribute) and node.func.attr == "sum":
        summed = ast.unparse(node.func.value)
        mean = ast.Call(ast.Attribute(node.func.value, "mean", ast.Load()), node.args, node.keywords)
        yield Edit(node, mean, target, f"{target} is the mean of {summed} where the sum belongs")
        yield Edit(node, node.func.value, target, f"{target} has {summed} where the sum of it belongs")
        if isinstance(axis := keywords.get("axis"), ast.Constant):
            last = _parsed(f"({summed}).take(-1, axis={axis.value!s})")
            message = f"{target} has the last of {summed} along axis {axis.value!s} where the sum belongs"
            yield Edit(node, last, target, message)
            for value in range(3):
                if value != axis.value:
                    message = f"{target} sums {summed} over axis {value} where axis {axis.value!s} belongs"
                    yield Edit(axis, ast.Constant(value), target, message)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "max":
        mean = ast.Call(ast.Attribute(node.func.value, "mean", ast.Load()), node.args, node.keywords)
        message = f"{target} is the mean of {ast.unparse(node.func.value)} where the maximum belongs"
        yield Edit(node, mean, target, message)
    if function == "np.einsum":
        yield from _contracted(node, target)
    if function == "np.concatenate" and isinstance(node.args[0], ast.List):
        blocks = node.args[0]
        for order in list(permutations(blocks.elts))[1:24]:
            names = ", ".join(map(ast.unparse, order))
            expected = ", ".join(map(ast.unparse, blocks.elts))
            reordered = ast.List(list(order), ast.Load())
            message = f"the blocks of {target} are in the order {names}, expected {expected}"
            yield Edit(blocks, reordered, target, message)


# The meaning of the indices of np.einsum.
_INDICES = {"n": "sample", "t": "step", "l": "slot", "c": "feature"}


def _contracted(node: ast.Call, target: str) -> Iterator[Edit]:
    """Edits of a sum of products over an index: only its last value, or the average."""
    spec, *operands = node.args
    if not isinstance(spec, ast.Constant):
        return
    inputs, _, output = str(spec.value).partition("->")
    subscripts = inputs.split(",")
    for letter in sorted({*inputs} - {*output} - {","}):
        index = _INDICES.get(letter, f"index {letter}")
        taken, left = [], []
        for subscript, operand in zip(subscripts, operands, strict=True):
            text, place = ast.unparse(operand), subscript.find(letter)
            taken.append(text if place < 0 else f"({text}).take(-1, axis={place})")
            left.append(subscript.replace(letter, ""))
        changed = f"np.einsum('{','.join(left)}->{output}', {', '.join(taken)})"
        message = f"{target} is overwritten for each {index} where the sum over all of them belongs"
        yield Edit(node, _parsed(changed), target, message)


def _other_names(node: ast.expr, target: str, alike: Alike) -> Iterator[Edit]:
    """Edits that replace a variable by another one."""
    name, _, suffix = ast.unparse(node).partition(".")
    if suffix not in ("", "T"):
        return
    for other in alike(name):
        for text in (f"{other}.T",) if suffix else (other, f"1 - {other}"):
            if text != ast.unparse(node):
                found = "its old value" if text == target else text.removesuffix(".T")
                belongs = f"{found} where {name} belongs"
                yield Edit(node, _parsed(text), target, f"{target} has {belongs}")


def _complements(node: ast.AST, target: str, alike: Alike) -> Iterator[Edit]:
    """Edits that replace 1 minus a variable by a variable, or by 1 minus another one."""
    if (name := _complemented(node)) is None:
        return
    belongs = f"1 - {name.id}"
    for other in alike(name.id):
        for text in (other, f"1 - {other}"):
            if text != belongs:
                yield Edit(node, _parsed(text), target, f"{target} has {text} where {belongs} belongs")


def _complemented(node: ast.AST) -> ast.Name | None:
    """The variable z of an expression 1 - z."""
    match node:
        case ast.BinOp(op=ast.Sub(), left=ast.Constant(value=1), right=ast.Name() as name):
            return name
    return None


def _steps(index: ast.expr, target: str) -> Iterator[Edit]:
    """Edits that read the step before or after."""
    for node in ast.walk(index):
        if isinstance(node, ast.Name) and node.id == "t":
            for shift, which in (("- 1", "before"), ("+ 1", "after")):
                yield Edit(
                    node, _parsed(f"(t {shift})"), target, f"{target} reads the step {which}, t {shift}"
                )


# ---------------------------------------------------------------- statements


def _edits_of_statements(definition: ast.FunctionDef) -> Iterator[Edit]:
    for node in ast.walk(definition):
        match node:
            case ast.AugAssign(target=target, value=value):
                name = name_of(target)
                text = ast.unparse(value)
                yield Edit(value, _scaled(value), name, f"{name} lacks the term {text}", text)
                message = f"{name} is overwritten where it should be added to"
                plain = ast.Assign([target], value)
                yield Edit(node, plain, name, message)
            case ast.For(iter=ast.Call(func=ast.Name(id="reversed"), args=[forward]), target=target):
                message = "the loop goes forward in time where it should go from the last step to the first"
                yield Edit(node.iter, forward, name_of(target), message)
            case ast.Assign(targets=[ast.Tuple(elts=targets) as blocks], value=ast.Call(func=function)) if (
                ast.unparse(function) == "np.split"
            ):
                expected = ", ".join(map(ast.unparse, targets))
                for order in list(permutations(targets))[1:24]:
                    names = ", ".join(map(ast.unparse, order))
                    message = f"the blocks are split in the order {names}, expected {expected}"
                    changed = ast.Tuple(list(order), ast.Store())
                    yield Edit(blocks, changed, expected, message)
            case ast.Assign(targets=[ast.Subscript() as target]):
                for index in ast.walk(target.slice):
                    if isinstance(index, ast.Name) and index.id == "t":
                        message = f"{name_of(target)} of step t is written to step t - 1"
                        yield Edit(index, _parsed("(t - 1)"), name_of(target), message)


# ---------------------------------------------------------------- syntax trees


def _is_read(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Load)


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _scaled(node: ast.expr) -> ast.expr:
    return ast.BinOp(ast.Name(ALPHA, ast.Load()), ast.Mult(), node)


def _transposed(node: ast.expr) -> ast.expr:
    return ast.Attribute(node, "T", ast.Load())
