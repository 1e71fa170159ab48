"""Names of update rules and schedules: built-in, registered, or "package.module:Object"."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from rnnlab.errors import InputError, InputTypeError
from rnnlab.importing import imported
from rnnlab.options import suggestion

T = TypeVar("T")


class Registry(Mapping[str, type[T]], Generic[T]):
    """Classes by name; a mapping of those that have one.

    Parameters
    ----------
    argument : str
        The argument that holds a name, for the errors.
    contract : type
        A class whose public members every class must have.
    classes : mapping of str to class
        The built-in ones.
    reserved : sequence of str
        Names that no class can get.
    """

    def __init__(
        self,
        argument: str,
        contract: type,
        classes: Mapping[str, type[T]],
        reserved: Sequence[str] = (),
    ) -> None:
        self._argument = argument
        self._required = sorted(
            name
            for name in {*dir(contract), *getattr(contract, "__annotations__", {})}
            if not name.startswith("_")
        )
        self._contract = contract.__name__
        self._classes = dict(classes)
        self._reserved = reserved

    def __getitem__(self, name: str) -> type[T]:
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    def register(self, name: str, entry: type[T]) -> None:
        """Register a class under a name.

        A class that has the name already is replaced by one of the same module and qualified name, as it is
        when a notebook cell is run again.

        Raises
        ------
        ValueError
            If the name is empty, has a colon, is reserved, or another class has it.
        TypeError
            If it is not a class, or lacks a member of the contract.
        """
        if not isinstance(name, str) or not name or ":" in name:
            raise InputError(f"register: name is {name!r}, expected a string without a colon")
        self._check(repr(name), entry)
        known = self._classes.get(name)
        if name in self._reserved or (known is not None and _qualified(known) != _qualified(entry)):
            raise InputError(f"register: {self._argument} {name!r} is taken, choose another name")
        self._classes[name] = entry

    def find(self, name: str) -> type[T]:
        """The class of a name, imported for "package.module:Object".

        Raises
        ------
        ValueError
            If there is no such name, module or object.
        TypeError
            If the object is not a class, or lacks a member of the contract.
        """
        if isinstance(name, str) and name in self._classes:
            return self._classes[name]
        if not isinstance(name, str) or ":" not in name:
            why = "a registered name is known only in the process that registered it"
            raise InputError(
                f"{self._argument} is {name!r}, expected one of {', '.join(self._classes)} "
                f"or 'package.module:Object'; {suggestion(str(name), self._classes, why)}"
            )
        entry = imported(self._argument, name)
        self._check(repr(name), entry)
        return entry

    def _check(self, name: str, entry: Any) -> None:
        if not isinstance(entry, type):
            raise InputTypeError(f"{self._argument} {name}: found {entry!r}, expected a class")
        if lost := ", ".join(_ignored_options(entry)):
            raise InputTypeError(
                f"{self._argument} {name}: {entry.__name__} is not a dataclass, so it ignores the options "
                f"{lost}: put @dataclass(kw_only=True) above the class"
            )
        if abstract := sorted(getattr(entry, "__abstractmethods__", ())):
            raise InputTypeError(
                f"{self._argument} {name}: {entry.__name__} has to define {', '.join(abstract)}"
            )
        missing = [member for member in self._required if not hasattr(entry, member)]
        if missing:
            raise InputTypeError(
                f"{self._argument} {name}: {entry.__name__} has no {', '.join(missing)}, expected all of "
                f"{', '.join(self._required)}; {self._contract} describes them"
            )


def _qualified(entry: type) -> tuple[str, str]:
    return entry.__module__, entry.__qualname__


def _ignored_options(entry: type) -> list[str]:
    """The annotated attributes of a class that inherits from a dataclass but is not a dataclass itself."""
    if "__dataclass_fields__" in vars(entry) or not hasattr(entry, "__dataclass_fields__"):
        return []
    own = inspect.get_annotations(entry)
    return [name for name, annotation in own.items() if "ClassVar" not in str(annotation)]
