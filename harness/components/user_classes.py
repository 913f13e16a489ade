"""A user's own component by dotted path: `class:my_module:MyTranscriber` (an example is in CONTRIBUTING.md).

Transcripts and vectors are cached by the `spec`: a class that changes what it returns must change its `revision`.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from ...errors import SqutrError, UsageError, unknown_name
from ..protocols import ComponentSpec

Kind = Literal[
    "transcriber",
    "audio_text_encoder",
    "front_end",
    "retriever",
    "encoder",
    "precomputed_transcripts",
    "precomputed_run",
    "answerer",
    "rewriter",
]
PREFIX = "class:"
WRITTEN = "class:<module>:<Class>"


@dataclass(frozen=True, slots=True)
class _Shape:
    values: tuple[str, ...]
    methods: Mapping[str, tuple[int, tuple[str, ...]]]
    spec_kind: str


_SUPPORTS = {"supports": (1, ())}
_ENCODE = {"encode": (1, ("role",))}
# The first method of each decides what an object is, in this order: an audio-text encoder encodes texts too.
_SHAPES: Mapping[Kind, _Shape] = {
    "transcriber": _Shape(
        ("spec", "sample_rate"), {"transcribe": (1, ("language",)), **_SUPPORTS}, spec_kind="transcriber"
    ),
    "audio_text_encoder": _Shape(
        ("spec", "sample_rate"),
        {"encode_audio": (1, ("language",)), **_ENCODE, **_SUPPORTS},
        spec_kind="audio_text_encoder",
    ),
    "front_end": _Shape(("spec", "sample_rate"), {"enhance": (1, ())}, spec_kind="front_end"),
    "retriever": _Shape(("spec",), {"search": (1, ("k",)), "index": (1, ("language",)), **_SUPPORTS}, "retriever"),
    "encoder": _Shape(("spec",), {**_ENCODE, **_SUPPORTS}, spec_kind="encoder"),
    "precomputed_transcripts": _Shape(("spec",), {"transcripts": (3, ()), **_SUPPORTS}, spec_kind="transcriber"),
    "precomputed_run": _Shape(("spec",), {"hits": (3, ("k",)), **_SUPPORTS}, spec_kind="retriever"),
    "answerer": _Shape(("spec", "sample_rate"), {"answer": (1, ()), **_SUPPORTS}, spec_kind="answerer"),
    "rewriter": _Shape(("spec",), {"rewrite": (1, ("language",)), **_SUPPORTS}, spec_kind="rewriter"),
}
_NAMES: Mapping[Kind, str] = {
    "transcriber": "a transcriber", "audio_text_encoder": "an audio-text encoder", "front_end": "a front end",
    "retriever": "a retriever", "encoder": "a text encoder", "precomputed_transcripts": "precomputed transcripts",
    "precomputed_run": "a precomputed run", "answerer": "an answerer", "rewriter": "a rewriter",
}  # fmt: skip


def load_user_class(dotted: str, **options: Any) -> object:
    """An object of the class (or from the function) at `module:Name` or `package.module.Name`, made with `options`.

    The module may lie in the working directory, which is searched first and only while it is imported. The object is
    checked to be a component (`check_component`). Raises `UsageError` for a path that is none, a module that cannot be
    imported, a name that it lacks, options that do not fit, an object that is no component.

    >>> load_user_class("squtr.harness.components.retrievers.bm25:BM25Retriever", k1=1.2).spec.settings["k1"]
    1.2
    >>> load_user_class("math:pi")
    Traceback (most recent call last):
    ...
    squtr.errors.UsageError: class:math:pi is no component: ...
    """
    dotted = dotted.removeprefix(PREFIX)
    made = find_user_class(dotted)
    if callable(made):
        made = _made(made, dotted, options)
    elif options:
        raise UsageError(f"{PREFIX}{dotted} is an object and takes no options, but {', '.join(options)} was given.")
    check_component(made, f"{PREFIX}{dotted}")
    return made


def find_user_class(dotted: str) -> object:
    """What lies at `module:Name` or `package.module.Name`; its module is imported, and nothing is called.

    >>> find_user_class("squtr.harness.components.retrievers.bm25:BM25Retriever").__name__
    'BM25Retriever'
    """
    dotted = dotted.removeprefix(PREFIX)
    module_name, attribute = _split(dotted)
    return _attribute(_module(module_name, dotted), module_name, attribute)


def kind_of(component: object) -> Kind:
    """What a component is, by its members. Raises `UsageError` for an object that is none, or two at once.

    >>> from .retrievers.bm25 import BM25Retriever
    >>> kind_of(BM25Retriever())
    'retriever'
    """
    return _kind_of(component, type(component).__name__)


def check_component(component: object, name: str) -> Kind:
    """What a component is; raises `UsageError` that names what it lacks of its protocol: members, arguments, kind."""
    kind = _kind_of(component, name)
    shape = _SHAPES[kind]
    missing = [member for member in (*shape.values, *shape.methods) if not _has(component, member)]
    if missing:
        raise UsageError(
            f"{name} looks like {_NAMES[kind]}, but lacks {', '.join(missing)}.",
            hint=f"{_NAMES[kind].capitalize()} has {', '.join((*shape.values, *shape.methods))}.",
        )
    for method, (positional, keywords) in shape.methods.items():
        _check_call(component, method, positional, keywords, name)
    spec = _spec(component, name)
    if spec.kind != shape.spec_kind:
        raise UsageError(
            f"{name} is {_NAMES[kind]}, but its spec says kind {spec.kind!r}.",
            hint=f"Write ComponentSpec({shape.spec_kind!r}, …).",
        )
    return kind


def _split(dotted: str) -> tuple[str, str]:
    module, separator, attribute = dotted.partition(":")
    if not separator:
        module, _, attribute = dotted.rpartition(".")
    names = [*module.split("."), *attribute.split(".")]
    if not all(name.isidentifier() for name in names):
        raise UsageError(
            f"{PREFIX}{dotted} is no path to a class.",
            hint="Write class:my_module:MyClass or class:package.module.Class.",
        )
    return module, attribute


@contextlib.contextmanager
def _working_directory_on_path() -> Iterator[None]:
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        # The imported module may have changed the path too.
        with contextlib.suppress(ValueError):
            sys.path.remove(here)


def _module(name: str, dotted: str) -> object:
    try:
        with _working_directory_on_path():
            importlib.invalidate_caches()
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        absent = error.name or ""
        if name == absent or name.startswith(f"{absent}."):
            raise UsageError(
                f"there is no module {absent!r} for {PREFIX}{dotted}.",
                hint=f"It must lie in {Path.cwd()} or be installed.",
            ) from error
        raise UsageError(
            f"the module {name!r} of {PREFIX}{dotted} needs the module {absent!r}, which is not installed.",
            hint=f"Install {absent.partition('.')[0]}.",
        ) from error
    except Exception as error:
        # A user's module may raise anything.
        raise UsageError(
            f"the module {name!r} of {PREFIX}{dotted} cannot be imported ({type(error).__name__}: {error}).",
            hint="Import it in Python to see where.",
        ) from error


def _attribute(module: object, module_name: str, path: str) -> object:
    found = module
    for name in path.split("."):
        if not hasattr(found, name):
            own = [
                key
                for key, value in vars(found).items()
                if inspect.isclass(value) and value.__module__ == getattr(module, "__name__", "")
            ]
            raise unknown_name(f"class of the module {module_name!r}", path, own)
        found = getattr(found, name)
    return found


def _made(factory: Any, dotted: str, options: Mapping[str, Any]) -> object:
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):  # a class of an extension module may not tell
        signature = None
    if signature is not None:
        try:
            signature.bind(**options)
        except TypeError as error:
            known = ", ".join(signature.parameters) or "none"
            raise UsageError(
                f"{PREFIX}{dotted} was given wrong options: {error}.", hint=f"It takes: {known}."
            ) from error
    try:
        return cast(object, factory(**options))
    except SqutrError:
        raise
    except Exception as error:
        # A user's constructor may raise anything.
        raise UsageError(
            f"{PREFIX}{dotted} cannot be made with {dict(options)} ({type(error).__name__}: {error}).",
            hint="Make it in Python to see where.",
        ) from error


def _kind_of(component: object, name: str) -> Kind:
    deciding: dict[Kind, str] = {kind: next(iter(shape.methods)) for kind, shape in _SHAPES.items()}
    kinds = [kind for kind, method in deciding.items() if _has(component, method)]
    if "audio_text_encoder" in kinds and "encoder" in kinds:
        kinds.remove("encoder")
    if not kinds:
        verbs = ", ".join(f"{method} ({_NAMES[kind]})" for kind, method in deciding.items())
        raise UsageError(f"{name} is no component: it has none of the methods {verbs}.")
    if len(kinds) > 1:
        raise UsageError(
            f"{name} could be {' or '.join(_NAMES[kind] for kind in kinds)}.", hint="Split it into one class each."
        )
    return kinds[0]


def _has(component: object, member: str) -> bool:
    """Whether there is such a member. A property is not run: it may look for weights."""
    absent = object()
    if inspect.getattr_static(component, member, absent) is not absent:
        return True
    # What is left is what `__getattr__` passes on.
    return hasattr(component, member)


def _check_call(component: object, method: str, positional: int, keywords: tuple[str, ...], name: str) -> None:
    bound = getattr(component, method)
    wanted = f"{method}({', '.join((*['…'] * positional, *(f'{keyword}=…' for keyword in keywords)))})"
    if not callable(bound):
        raise UsageError(f"{name} has {method}, but it is no method.", hint=f"It is called as {wanted}.")
    try:
        inspect.signature(bound).bind(*[None] * positional, **dict.fromkeys(keywords))
    except ValueError:  # a method of an extension module may not tell
        return
    except TypeError as error:
        raise UsageError(f"{name} cannot be called as {wanted}: {error}.", hint="Change its arguments.") from error


def _spec(component: object, name: str) -> ComponentSpec:
    try:
        spec = getattr(component, "spec", None)
    except SqutrError:
        raise
    except Exception as error:
        # A user's property may raise anything.
        raise UsageError(f"the spec of {name} cannot be read ({type(error).__name__}: {error}).") from error
    if not isinstance(spec, ComponentSpec):
        raise UsageError(
            f"the spec of {name} is a {type(spec).__name__}.", hint="Give a squtr.harness.protocols.ComponentSpec."
        )
    return spec
