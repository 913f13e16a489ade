"""Rows of the tables of components, and what imports a row's class."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from ...errors import missing_extra


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """A component that is written `<name>:<model>` if it `takes_model`, else `<name>`.

    `path` is the dotted path `package.module:Class` below `squtr`, `extra` the extra of squtr that installs what it
    needs ("" for none). A constructor that passes options on names the class that takes them (`passes_options_to`).
    """

    name: str
    path: str
    extra: str
    takes_model: bool
    passes_options_to: str = ""

    @property
    def written(self) -> str:
        """How a user writes it.

        >>> BackendSpec("dense", "a:B", "torch", True).written
        'dense:<model>'
        """
        return f"{self.name}:<model>" if self.takes_model else self.name

    def constructors(self) -> list[Callable[..., object]]:
        """The class, and after it the one that it passes options on to. Raises `MissingExtraError`."""
        return [self._imported(path) for path in (self.path, self.passes_options_to) if path]

    def _imported(self, path: str) -> Callable[..., object]:
        module, _, name = path.partition(":")
        try:
            # Relative to the package above `harness`, whatever that is called.
            return cast(Callable[..., object], getattr(importlib.import_module(f"...{module}", __package__), name))
        except ModuleNotFoundError as error:
            if not self.extra or (error.name or "").startswith(f"{__package__}."):
                raise
            raise missing_extra(error.name or module, self.extra) from error


def table_of(*rows: BackendSpec) -> Mapping[str, BackendSpec]:
    return {row.name: row for row in rows}


def constructor_chain(component: Callable[..., object]) -> list[Callable[..., object]]:
    """A function, or the constructors of a class and, as long as each takes `**rest`, those of its base classes."""
    if not inspect.isclass(component):
        return [component]
    chain: list[Callable[..., object]] = []
    for base in component.__mro__:
        made_by = base.__dict__.get("__init__")
        if made_by is None or base is object:
            continue
        chain.append(made_by)
        if not _takes_rest(made_by):
            break
    return chain


def option_names(constructors: list[Callable[..., object]]) -> list[str] | None:
    """The keyword-only parameters of these constructors; None if one takes any, and passes it on to no other."""
    names: dict[str, None] = {}
    for number, component in enumerate(constructors, start=1):
        chain = constructor_chain(component)
        for made_by in chain:
            parameters = inspect.signature(made_by).parameters.values()
            names |= dict.fromkeys(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
        if number == len(constructors) and chain and _takes_rest(chain[-1]):
            return None
    return list(names)


def _takes_rest(made_by: Callable[..., object]) -> bool:
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(made_by).parameters.values())
