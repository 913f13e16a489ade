"""What a component can be given: the keyword-only parameters of its constructor that a file or a flag can hold."""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Union

from pydantic import TypeAdapter, ValidationError

from ...errors import UsageError, unknown_name
from ..components.table import constructor_chain

TRUST = "trust_remote_code"
_NOT_OPTIONS = frozenset({TRUST, "below", "cache", "first", "otherwise", "parts"})
"""Given otherwise: trust by the command line alone, the cache below its folder, retrievers as `parts` of an entry."""

_SCALARS = (str, int, float, bool, type(None), Path, Any)
_LISTS = (list, tuple, Sequence)
_MAPS = (dict, Mapping)


@dataclass(frozen=True, slots=True)
class Option:
    """An option: `annotation` is its type, `default` its default where it is not `required`."""

    name: str
    annotation: Any
    default: Any
    required: bool

    @property
    def type_name(self) -> str:
        """The type as a reader knows it.

        >>> Option("device", str | None, None, False).type_name
        'text or null'
        """
        return _type_name(self.annotation)


def component_options(component: Callable[..., object], *, positional: bool = False) -> dict[str, Option]:
    """The options of a class, by name, in the constructor's order, without parameters that take an object.

    With `positional`, those are options too that could be given without their name, as in a user's class.
    """
    kinds = [inspect.Parameter.KEYWORD_ONLY, *([inspect.Parameter.POSITIONAL_OR_KEYWORD] if positional else [])]
    found: dict[str, Option] = {}
    for made_by in constructor_chain(component):
        for parameter in inspect.signature(made_by).parameters.values():
            if parameter.kind not in kinds or parameter.name in {"self", *_NOT_OPTIONS, *found}:
                continue
            annotation = _plain(_resolved(made_by, parameter))
            if annotation is not None:
                required = parameter.default is parameter.empty
                default = None if required else parameter.default
                found[parameter.name] = Option(parameter.name, annotation, default, required)
    return found


def checked_options(
    what: str,
    known: Mapping[str, Option],
    given: Mapping[str, Any],
    place: Callable[[str], str],
    *,
    open_: bool = False,
) -> dict[str, Any]:
    """`given` as the constructor takes it: a list where it wants a tuple, a path where it wants one.

    With `open_`, unknown options pass. Raises `UnknownNameError`, `UsageError` naming `place`.
    """
    checked: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known and open_:
            checked[name] = value
            continue
        if name not in known:
            error = unknown_name(f"option of {what}:", name, known)
            raise type(error)(f"{place(name)}: {error.message}" if place(name) else error.message, hint=error.hint)
        checked[name] = _checked(known[name], value, place(name) or f"the option {name!r} of {what}")
    return checked


def _checked(option: Option, value: Any, place: str) -> Any:
    if isinstance(value, Path):
        return value
    try:
        # As JSON, because there a list may become a tuple and a text a path, and nothing else changes its type.
        return TypeAdapter(option.annotation).validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        if len(error.errors()) > 1:
            reason = f"{option.type_name} is expected"
        raise UsageError(f"{place} is {shown(value)}: {reason[:1].lower()}{reason[1:]}.", hint="Correct it.") from error


def shown(value: Any) -> str:
    """A value in an error, cut where it is long.

    >>> shown(True), shown("a" * 100)[-6:]
    ('true', 'aaaa…"')
    """
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:78]}…{text[-1]}"


def _resolved(made_by: Callable[..., object], parameter: inspect.Parameter) -> Any:
    """The annotation as a type; None where it names what is imported for type checkers alone."""
    annotation = parameter.annotation
    if annotation is parameter.empty:
        return Any
    if not isinstance(annotation, str):
        return annotation
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(holder, globalns=getattr(made_by, "__globals__", {}))["it"]
    except (NameError, AttributeError, TypeError):
        return None


def _plain(annotation: Any) -> Any:
    """`annotation` without what JSON cannot hold; None if nothing, or null alone, is left."""
    if annotation in _SCALARS:
        return annotation
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return annotation
    if origin in (Union, types.UnionType):
        kept = [plain for plain in map(_plain, arguments) if plain is not None]
        return Union[tuple(kept)] if any(k is not type(None) for k in kept) else None  # noqa: UP007
    inner = [a for a in arguments if a is not Ellipsis]
    if origin in (*_LISTS, *_MAPS) and all(_plain(a) is not None for a in inner):
        return annotation
    return None


def _type_name(annotation: Any) -> str:
    names = {str: "text", int: "integer", float: "number", bool: "true or false", type(None): "null", Path: "path"}
    if annotation in names:
        return names[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{a}`" for a in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_type_name(a) for a in arguments))
    if origin in _LISTS:
        return f"list of {_type_name(arguments[0])}s" if arguments else "list"
    if origin in _MAPS:
        return "mapping"
    return "any value"


def accepts(component: Callable[..., object], name: str) -> bool:
    """Whether a constructor has the keyword `name`, or passes it on to its base class."""
    return any(name in inspect.signature(made_by).parameters for made_by in constructor_chain(component))
