"""YAML and JSON as plain values. Refused: other tags (`!!python/…`), repeated or non-text keys, NaN and infinity."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import yaml

from ...errors import DataError, UsageError

LARGEST_BYTES = 1 << 20
MOST_VALUES = 50_000
"""How many values a file may hold once its aliases are followed."""

_TAG = "tag:yaml.org,2002:"
_PLAIN = {
    "null": (re.compile(r"(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    "bool": (re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    "int": (re.compile(r"[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789")),
    "float": (
        re.compile(
            r"(?:[-+]?(?:\d+\.\d*|\d+(?=[eE])|\.\d+)(?:[eE][-+]?\d+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
        ),
        list("-+.0123456789"),
    ),
    "merge": (re.compile(r"<<$"), ["<"]),
}
"""What an unquoted word means, by YAML 1.2: `no` and `2024-01-01` are texts, `1e-3` is a number."""
_KINDS = ("null", "bool", "int", "float", "str", "seq", "map")


class _Loader(yaml.SafeLoader):
    """The safe loader for the tags of plain values alone, with keys that may stand only once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping whose keys are texts that stand once (a merge, `<<`, gives what is not there)."""
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag == f"{_TAG}merge":
                continue
            if key.tag != f"{_TAG}str":
                raise yaml.constructor.ConstructorError(
                    None, None, "a field's name is no text; put it in quotes", key.start_mark
                )
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the field {key.value!r} stands there twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


_Loader.yaml_implicit_resolvers = {}
_Loader.yaml_constructors = {
    tag: make
    for tag, make in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag.removeprefix(_TAG) in _KINDS
}


class _Dumper(yaml.SafeDumper):
    """Quotes what `_Loader` would otherwise read as something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # In any other style PyYAML writes the line breaks of Unicode as they are, and reads them as blanks.
    odd = any(not character.isprintable() for character in text)
    return dumper.represent_scalar(f"{_TAG}str", text, style='"' if odd else None)


_Dumper.add_representer(str, _represent_text)
for _name, (_pattern, _firsts) in _PLAIN.items():
    _Loader.add_implicit_resolver(f"{_TAG}{_name}", _pattern, _firsts)
    _Dumper.add_implicit_resolver(f"{_TAG}{_name}", _pattern, _firsts)


def read_plain(path: Path) -> Any:
    """The value in a `.json` or YAML file. Raises `DataError` with file and line, but no value: it may be secret."""
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_BYTES + 1)
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist.", hint="Check the path.") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.", hint="Check the path.") from error
    if len(content) > LARGEST_BYTES:
        raise DataError(f"{path} is larger than {LARGEST_BYTES} bytes.", hint="A file of systems is small.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 ({error.reason}).", hint="Convert it to UTF-8.") from error
    value = _from_json(text, path) if path.suffix.lower() == ".json" else _from_yaml(text, path)
    for number, (place, found) in enumerate(_walk(value, str(path))):
        if number >= MOST_VALUES:
            raise DataError(f"{path} holds more than {MOST_VALUES} values.", hint="A file of systems is small.")
        if isinstance(found, float) and not math.isfinite(found):
            raise DataError(f"{place} is {found}.", hint="Write a finite number.")
    return value


def plain_values(value: Any, place: str = "") -> Iterator[tuple[str, str, Any]]:
    """Place ("systems[0].retriever"), last key ("retriever"; "" in a list) and value of everything in `value`.

    >>> [place for place, _, _ in plain_values({"a": [1, {"b": 2}]})]
    ['', 'a', 'a[0]', 'a[1]', 'a[1].b']
    """
    stack: list[tuple[str, str, Any]] = [(place, "", value)]
    while stack:
        here, key, found = stack.pop()
        yield here, key, found
        inner: list[tuple[str, str, Any]] = []
        if isinstance(found, dict):
            inner = [(f"{here}.{name}" if here else str(name), str(name), v) for name, v in found.items()]
        elif isinstance(found, list):
            inner = [(f"{here}[{i}]", "", v) for i, v in enumerate(found)]
        stack += reversed(inner)


def _walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    for place, _, found in plain_values(value):
        yield (f"{path}: {place}" if place else path), found


def to_yaml(value: Any) -> str:
    """`value` as YAML that `read_plain` reads as the same value.

    >>> print(to_yaml({"model": "1e3", "k1": 1.2}), end="")
    model: '1e3'
    k1: 1.2
    """
    try:
        return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)
    except yaml.YAMLError as error:
        raise UsageError(f"a value cannot be written as YAML: {error}.") from error


def read_value(text: str, name: str) -> Any:
    """The value of an option from the command line. Raises `UsageError` naming it.

    >>> read_value("5", "beam_size"), read_value("float16", "dtype"), read_value("[1, 2]", "sizes")
    (5, 'float16', [1, 2])
    """
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506  (a safe loader with fewer tags)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UsageError(f"the value {text!r} of {name} cannot be read.", hint="Put a text in quotes.") from error


def _from_yaml(text: str, path: Path) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506  (a safe loader with fewer tags)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark is not None else ""
        message = error.problem or error.context or "it cannot be read"
        if error.context and "single document" in error.context:
            message = "it holds more than one document; list the systems under `systems:`"
        elif "could not determine a constructor for the tag" in message:
            tag = message.rpartition("tag ")[2].replace(_TAG, "!!").strip("'\"")
            message = f"the tag {tag} is not allowed; only plain values are"
        raise DataError(f"{path}{line}: {message}.", hint="Mend the file.") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        message = "it is nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise DataError(f"{path}: it is no YAML: {message}.", hint="Mend the file.") from error


def _from_json(text: str, path: Path) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise DataError(f"{path}: the field {key!r} stands there twice.", hint="Mend the file.")
            found[key] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno}: not JSON ({error.msg}).", hint="Mend the file.") from error
    except RecursionError as error:
        raise DataError(f"{path}: it is nested too deeply.", hint="Mend the file.") from error
