"""Systems in a file, YAML or JSON (docs/systems.md): one system or a list of them under `systems:`.

front_end: {backend: wpe, taps: 10}
transcriber: {en: whisper-large-v3, zh: funasr:paraformer-zh}
retriever: {backend: bm25, k1: 1.2}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...errors import SqutrError, UsageError, unknown_name
from .entries import LANGUAGE, ROUTE, ROUTED, ComponentEntry, Role, SystemEntry, Written, entries_of
from .options import TRUST, shown
from .plain_yaml import plain_values, read_plain, to_yaml
from .short_form import CLASS, checked_component, parse_component, parse_retriever, parse_short_form
from .system import ROLES, System

NONE = "none"
MOST_SYSTEMS = 10_000
_SECRET = re.compile(
    r"(?:^|_)(?:api_?key|access_?key|secret_?key|key|token|secret|password|passwd|authorization|bearer|credentials?)$",
    re.IGNORECASE,
)
_LOOKS_SECRET = re.compile(
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}|\bhf_[A-Za-z0-9]{16,}|\bBearer\s+\S{8,}|://[^/\s:@]*:[^/\s@]+@", re.IGNORECASE
)

_CHAINS = (["transcriber", "retriever"], ["transcriber"], ["encoder"], ["answerer"], ["transcriber", "answerer"])

_OPTIONAL: tuple[Role, ...] = ("front_end", "rewriter")

_Model = TypeVar("_Model", bound=BaseModel)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Shared(_Strict):
    reranker: Any = None
    n_best: int = Field(default=1, ge=1)
    n_best_fusion: Literal["rrf", "score"] = "rrf"
    normalizer: str = ""
    script: Literal["auto", "simplified", "none"] = "auto"


class _System(_Shared):
    name: str = ""
    front_end: Any = None
    transcriber: Any = None
    rewriter: Any = None
    retriever: Any = None
    encoder: Any = None
    run: Any = None
    answerer: Any = None
    text_only: bool = False
    templates: dict[str, str] = Field(default_factory=dict)


class _Axes(_Strict):
    transcribers: list[Any] = []
    rewriters: list[Any] = [None]
    retrievers: list[Any] = []
    encoders: list[Any] = []
    answerers: list[Any] = []
    front_ends: list[Any] = [None]


class _Grid(_Shared):
    grid: Any


class _Component(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    backend: str
    model: str = ""
    preset: str = ""
    parts: list[Any] = []


_DEFAULTS: Mapping[str, Any] = {
    name: one.get_default(call_default_factory=True) for name, one in _System.model_fields.items()
}
_FIELDS: Mapping[type[BaseModel], Sequence[str]] = {
    model: list(model.model_fields) for model in (_System, _Grid, _Axes, _Component)
}


def read_entries(path: Path, *, called: str = "") -> list[SystemEntry]:
    """The systems in a file as they are written, grids expanded. `called` is what errors call the file.

    Raises `DataError` for a file that cannot be read, `UsageError` that names file, place and value for a field that is
    wrong, for `trust_remote_code` and for what looks like a key: neither may stand in a file.
    """
    document = read_plain(path)
    _refuse_secrets(document, path)
    called = called or f"{path}"
    if not isinstance(document, dict):
        raise UsageError(
            f"{called} holds {_kind(document)} where fields are expected.",
            hint="Write the fields of a system, or a list under `systems:`.",
        )
    if "systems" not in document:
        return _entries(document, called, "")
    if len(document) > 1:
        other = next(name for name in document if name != "systems")
        raise UsageError(f"{called}: {other} stands beside systems.", hint="Put it into the systems of the list.")
    systems = document["systems"]
    if not isinstance(systems, list) or not systems:
        raise UsageError(f"{called}: systems is {shown(systems)}: a list of systems is expected.", hint="Correct it.")
    found = [entry for i, item in enumerate(systems) for entry in _entries(item, called, f"systems[{i}]")]
    if len(found) > MOST_SYSTEMS:
        raise UsageError(f"{called} holds {len(found)} systems.", hint=f"At most {MOST_SYSTEMS} go into a file.")
    return found


def write_spec(system: System) -> str:
    """The YAML that `load_systems` reads as an equal system. Raises `UsageError` for one made in another way."""
    written: dict[str, Any] = {"name": system.display_name} if system.display_name else {}
    for role in ROLES:
        part = getattr(system, role)
        name = "run" if role == "retriever" and system.kind == "run" else role
        if isinstance(part, Mapping):
            written[name] = {language: _written(system, one) for language, one in part.items()}
        elif part is not None:
            written[name] = _written(system, part)
    for one in ("text_only", "templates", "n_best", "n_best_fusion", "normalizer", "script"):
        if getattr(system, one) != _DEFAULTS[one]:
            written[one] = dict(system.templates) if one == "templates" else getattr(system, one)
    return to_yaml(written)


def _written(system: System, component: object) -> dict[str, Any]:
    for made, entry in system.origins:
        if made is component:
            return entry.as_dict()
    raise UsageError(
        f"{system.name!r} cannot be written as a file: how its {type(component).__name__} was made is not known.",
        hint="Only components from a short form or a spec file can be written.",
    )


def _refuse_secrets(document: Any, path: Path) -> None:
    """Keys belong into the environment, and trust is given on the command line; the value is shown nowhere."""
    for place, key, value in plain_values(document):
        where = f"{path}: {place}"
        if key == TRUST:
            raise UsageError(
                f"{where} cannot stand in a file: whether code from a repository may run is for the one who runs it.",
                hint="Give --trust-remote-code on the command line.",
            )
        if key == "key_variable" and not (isinstance(value, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value)):
            raise UsageError(
                f"{where} is no name of an environment variable.",
                hint="Write for example key_variable: OPENAI_API_KEY.",
            )
        if _SECRET.search(key) or (isinstance(value, str) and _LOOKS_SECRET.search(value)):
            raise UsageError(
                f"{where} looks like a key or password, which may not stand in a file.",
                hint="Put it into an environment variable, and give that variable's name as key_variable.",
            )


def _entries(item: Any, path: str, place: str) -> list[SystemEntry]:
    """The systems of one item: one, or those of a grid."""
    here = _join(path, place)
    if isinstance(item, str):
        return [_placed(parse_short_form, item, here)]
    if not isinstance(item, dict):
        raise UsageError(
            f"{here} is {_kind(item)} where the fields of a system are expected.", hint="Write transcriber: and so on."
        )
    if "grid" in item:
        return _grid(_validated(_Grid, item, path, place), path, place)
    fields = _validated(_System, item, path, place)
    return [_system(fields, path, place)]


def _system(fields: _System, path: str, place: str) -> SystemEntry:
    here = _join(path, place)
    given = [name for name in ("transcriber", "retriever", "encoder", "run", "answerer") if getattr(fields, name)]
    if given not in (*_CHAINS, ["run"]):
        raise UsageError(
            f"{here} has {_listed(given)}.",
            hint="A system has a transcriber (and a retriever, or an answerer), an encoder, a run, or an answerer.",
        )
    if "retriever" not in given and fields.reranker is not None:
        raise UsageError(f"{_join(path, place, 'reranker')} has no retriever before it.", hint="Remove it.")
    if "transcriber" not in given:
        for name in ("n_best", "n_best_fusion", "normalizer", "script"):
            if name in fields.model_fields_set:
                raise UsageError(
                    f"{_join(path, place, name)} is for transcripts, and {' and '.join(given)} gives none.",
                    hint="Remove it.",
                )
    written = {role: _per_language(role, getattr(fields, role), path, _dot(place, role)) for role in ROLES}
    if fields.run is not None:
        written["retriever"] = _per_language("retriever", fields.run, path, _dot(place, "run"))
        for run in entries_of(written["retriever"]):
            if run.backend not in ("trec", CLASS):
                raise UsageError(f"{run.place}: {run.backend!r} is no precomputed run.", hint="Write trec:FILE.")
    elif fields.retriever is not None:
        written["retriever"] = _mapped(
            written["retriever"], lambda entry: _reranked(entry, fields.reranker, path, place)
        )
    return SystemEntry(
        **written,
        text_only=fields.text_only,
        templates=fields.templates,
        script=fields.script,
        normalizer=fields.normalizer,
        n_best=fields.n_best,
        n_best_fusion=fields.n_best_fusion,
        name=fields.name,
        place=here,
    )


def _per_language(role: Role, value: Any, path: str, place: str) -> Written | None:
    """A component, or a mapping of languages to components: all of its keys are then languages."""
    if not isinstance(value, dict) or "backend" in value:
        return _component(role, value, path, place)
    languages = [key for key in value if isinstance(key, str) and LANGUAGE.fullmatch(key)]
    if not value or len(languages) != len(value):
        other = next((key for key in value if key not in languages), "")
        raise UsageError(
            f"{_join(path, place)} has neither a backend nor languages alone ({shown(other)}).",
            hint="Write {backend: …} for one component, {en: …, zh: …} for one per language.",
        )
    found: dict[str, ComponentEntry] = {}
    for language, one in value.items():
        entry = _component(role, one, path, f"{place}.{language}")
        if entry is None:
            raise UsageError(f"{_join(path, place)}.{language} is empty.", hint="Give a component.")
        found[language] = entry
    return found


def _mapped(written: Written | None, change: Callable[[ComponentEntry], ComponentEntry | None]) -> Written | None:
    if isinstance(written, Mapping):
        return {language: cast(ComponentEntry, change(one)) for language, one in written.items()}
    return None if written is None else change(written)


def _grid(fields: _Grid, path: str, place: str) -> list[SystemEntry]:
    inner = _dot(place, "grid")
    here = _join(path, inner)
    axes = _validated(_Axes, fields.grid, path, inner)
    roles: list[Role] = [role for role in ROLES if role not in _OPTIONAL and getattr(axes, f"{role}s")]
    if roles not in _CHAINS or not axes.front_ends or not axes.rewriters:
        raise UsageError(
            f"{here} has {_listed([f'{role}s' for role in roles])}.",
            hint="A grid has transcribers (and retrievers or answerers), encoders, or answerers; front_ends and "
            "rewriters if wanted.",
        )
    searched = "retriever" in roles
    for name in sorted(fields.model_fields_set - {"grid"}):
        if not searched and (name != "normalizer" or "transcriber" not in roles):
            raise UsageError(
                f"{_join(path, place, name)} is for searching with transcripts, and {_listed(roles)} does not.",
                hint="Remove it.",
            )

    def axis(role: Role) -> list[Written | None]:
        values = enumerate(getattr(axes, f"{role}s"))
        found = [_per_language(role, value, path, f"{inner}.{role}s[{i}]") for i, value in values]
        if role != "retriever":
            return found
        return [_mapped(one, lambda entry: _reranked(entry, fields.reranker, path, place)) for one in found]

    columns = {role: axis(role) for role in (*_OPTIONAL, *roles)}
    if prod(map(len, columns.values())) > MOST_SYSTEMS:
        raise UsageError(f"{here} has more than {MOST_SYSTEMS} combinations.", hint="Make it smaller.")
    shared: dict[str, Any] = {
        name: getattr(fields, name) for name in ("script", "normalizer", "n_best", "n_best_fusion")
    }
    return [
        SystemEntry(**shared | dict(zip(columns, combination, strict=True)), place=here)
        for combination in product(*columns.values())
    ]


def _component(role: Role, value: Any, path: str, place: str) -> ComponentEntry | None:
    """One component: a short form, or a mapping with `backend`; null and, where it may be left out, `none` are none."""
    if value is None or (role in _OPTIONAL and value == NONE):
        return None
    here = _join(path, place)
    if isinstance(value, str):
        if role == "retriever":
            return _at(_placed(parse_retriever, value, here), here)
        return _at(_placed(lambda text: parse_component(role, text), value, here), here)
    if not isinstance(value, dict):
        raise UsageError(
            f"{here} is {shown(value)}: a component is expected.", hint="Write for example {backend: bm25, k1: 1.2}."
        )
    fields = _validated(_Component, value, path, place)
    options = dict(fields.model_extra or {})
    written_parts = {f"parts[{i}]": part for i, part in enumerate(fields.parts)}
    if fields.backend == ROUTE:
        written_parts |= {name: options.pop(name) for name in ROUTED if name in options}
    parts: list[ComponentEntry] = []
    for name, part in written_parts.items():
        inner = _component("retriever", part, path, f"{place}.{name}")
        if inner is None:
            raise UsageError(f"{_join(path, place)}.{name} is null.", hint="Remove it.")
        parts.append(inner)
    entry = ComponentEntry(fields.backend, fields.model, fields.preset, tuple(parts), options, here)
    written = f"{entry.backend}:{entry.model}" if entry.model else entry.backend
    return _placed(lambda text: checked_component(role, entry, text), written, here)


def _reranked(entry: ComponentEntry | None, reranker: Any, path: str, place: str) -> ComponentEntry | None:
    """`reranker: {…}` (or a list of them, one after the other) behind a retriever."""
    if reranker is None or entry is None:
        return entry
    several = isinstance(reranker, list)
    for i, value in enumerate(reranker if several else [reranker]):
        at = _dot(place, f"reranker[{i}]" if several else "reranker")
        if isinstance(value, str):
            # A reranker alone: as a retriever it would stand behind another.
            stage: ComponentEntry | None = _placed(
                lambda text: parse_component("retriever", text), value, _join(path, at)
            )
        else:
            stage = _component("retriever", value, path, at)
        if stage is None or stage.backend != "rerank" or stage.parts:
            raise UsageError(
                f"{_join(path, at)} is {shown(value)}: a reranker without parts is expected.",
                hint="Write for example {backend: rerank, model: …, depth: 50}.",
            )
        entry = ComponentEntry(stage.backend, stage.model, stage.preset, (entry,), stage.options, _join(path, at))
    return entry


def _at(entry: ComponentEntry, place: str) -> ComponentEntry:
    """A short form's entry and its parts with the place where the form stands."""
    parts = tuple(_at(part, place) for part in entry.parts)
    return ComponentEntry(entry.backend, entry.model, entry.preset, parts, entry.options, place)


Entry = TypeVar("Entry")


def _placed(parse: Callable[[str], Entry], text: str, place: str) -> Entry:
    try:
        return parse(text)
    except SqutrError as error:
        raise type(error)(f"{place}: {error.message}", hint=error.hint) from error


def _validated(model: type[_Model], value: Any, path: str, place: str) -> _Model:
    if not isinstance(value, dict):
        raise UsageError(f"{_join(path, place)} is {shown(value)}: fields are expected.", hint="Correct it.")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        _refuse(model, error, path, place)


def _refuse(model: type[BaseModel], error: ValidationError, path: str, place: str) -> NoReturn:
    """Raise the first finding as a sentence with file, place and value."""
    first = error.errors()[0]
    where = place
    for step in first["loc"]:
        where = f"{where}[{step}]" if isinstance(step, int) else _dot(where, step)
    here = _join(path, where)
    if first["type"] == "extra_forbidden":
        name = str(first["loc"][-1])
        known = [*_FIELDS[model], *(["systems", "grid"] if model is _System and not place else [])]
        found = unknown_name("field", name, known)
        raise type(found)(f"{here} = {shown(first['input'])}: {found.message}", hint=found.hint) from error
    if first["type"] == "missing":
        raise UsageError(f"{here} is missing.", hint="Add it.") from error
    reason = first["msg"]
    raise UsageError(
        f"{here} is {shown(first['input'])}: {reason[:1].lower()}{reason[1:]}.", hint="Correct it."
    ) from error


def _dot(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _join(path: str, place: str, name: str = "") -> str:
    inner = _dot(place, name) if name else place
    return f"{path}: {inner}" if inner else path


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names) if names else "no component"


def _kind(value: Any) -> str:
    kinds = {list: "a list", dict: "fields", str: "text", type(None): "nothing", bool: "true or false"}
    return kinds.get(type(value), "a number")
