"""Teaches `datasets` the bare name "squtr", in this one module.

`datasets.load.dataset_module_factory`, which turns a name into a builder, is wrapped when `datasets` is imported; for
every other name it does what it always did. A folder of that name is read with `load_dataset("./squtr", …)`.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import inspect
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from .. import __version__
from ..errors import SqutrError, UsageError

NAME = "squtr"
_TARGET = "datasets.load"
_FACTORY = "dataset_module_factory"
_PARAMETERS = ("path", "revision", "download_config", "download_mode", "data_dir", "data_files", "cache_dir")
_FIELDS = ("module_path", "hash", "builder_kwargs")
_MARK = "_squtr_wrapped"
_INSTEAD = {
    "revision": "Name it with the source: release:ORG/NAME@<commit>, mteb:ORG/NAME@<commit>, …",
    "data_dir": "Name the folder with source=…",
    "data_files": "Name a folder with source=…, or load files with datasets.load_dataset('parquet', data_files=…).",
    "token": "Log in with `hf auth login`, or set HF_TOKEN.",
    "storage_options": "Give a folder on this machine with source=…",
}
"""What to do in the place of an argument of `datasets.load_dataset` that has no meaning here."""


def install() -> None:
    """Wrap the factory now if `datasets` is loaded, else as soon as it is. Calling it again changes nothing."""
    module = sys.modules.get(_TARGET)
    if module is not None:
        _wrap(module)
        for name in ("datasets.inspect",):
            copy = sys.modules.get(name)
            if copy is not None and hasattr(copy, _FACTORY):
                setattr(copy, _FACTORY, getattr(module, _FACTORY))
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _wrap(module: ModuleType) -> None:
    original: Callable[..., Any] = getattr(module, _FACTORY)
    if getattr(original, _MARK, False):
        return
    fits = _fits(original, module)

    @functools.wraps(original)
    def dataset_module_factory(path: str, *args: Any, **kwargs: Any) -> Any:
        if path != NAME:
            return original(path, *args, **kwargs)
        if not fits:
            import datasets

            raise SqutrError(
                f'datasets {datasets.__version__} does not let squtr answer load_dataset("squtr").',
                hint="Use squtr.load_dataset(…), or install datasets 5.2.",
            )
        _refuse(dict(zip(_PARAMETERS[1:], args, strict=False)) | kwargs)
        from .keyed import RECIPE_VERSION

        return module.DatasetModule(
            module_path=f"{__package__}.on_the_fly",
            hash=f"{__version__}-{RECIPE_VERSION}",
            builder_kwargs={"dataset_name": NAME},
        )

    setattr(dataset_module_factory, _MARK, True)
    setattr(module, _FACTORY, dataset_module_factory)


def _refuse(given: dict[str, Any]) -> None:
    """Raise `UsageError` for an argument of `datasets.load_dataset` that would be passed over."""
    download = given.get("download_config")
    options = {name: given.get(name) for name in ("revision", "data_dir", "data_files")}
    options |= {
        "token": getattr(download, "token", None),
        "storage_options": getattr(download, "storage_options", None),
    }
    for name, value in options.items():
        if value:
            raise UsageError(f"squtr takes no {name} (it is {_shown(name, value)}).", hint=_INSTEAD[name])


def _shown(name: str, value: object) -> str:
    return "given" if name in {"token", "storage_options"} else repr(value)


def _fits(factory: Callable[..., Any], module: ModuleType) -> bool:
    """Whether this version of `datasets` has the signature that the wrapper was written for."""
    parameters = tuple(inspect.signature(factory).parameters)
    fields = getattr(getattr(module, "DatasetModule", None), "__dataclass_fields__", {})
    return parameters[: len(_PARAMETERS)] == _PARAMETERS and all(name in fields for name in _FIELDS)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds `datasets.load` as Python would, and has it wrapped after it was executed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _TARGET:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _wrap(module)

    def __getattr__(self, name: str) -> Any:
        # inspect.getsource and the like ask the loader.
        return getattr(self._loader, name)
