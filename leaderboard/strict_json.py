"""Reading JSON that comes from anyone: one object, of bounded size, and only what JSON has.

Python's own reader is kinder than the standard (RFC 8259): it takes NaN and Infinity, turns 1e999 into infinity, and
of a key that appears twice it silently keeps the last. A file that means two things is refused here.
"""

from __future__ import annotations

import json
import math
import unicodedata
from pathlib import Path
from typing import Any, NoReturn

from ..errors import DataError

MOST_BYTES = 4 * 2**20
"""The largest result is that of a config of many subsets: about 20 kB a subset."""
MOST_DEPTH = 24
MOST_NAME = 200
MOST_DIGITS = 24

_HINT = "Submit the file as squtr wrote it."


def read_object(path: Path, *, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """The object in a file. Raises `DataError` naming the file for what `parse_object` refuses."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise DataError(f"{path} is no file.", hint="Check the path.")
        if size > most_bytes:
            raise DataError(f"{path} has {size / 2**20:.1f} MB, the limit is {most_bytes / 2**20:.0f} MB.", hint=_HINT)
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist.", hint="Check the path.") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.", hint="Check the path.") from error
    return parse_object(content, str(path))


def parse_object(content: bytes, name: str) -> dict[str, Any]:
    """The object in UTF-8 text.

    Raises `DataError`, with `name` for the file, if it is no JSON or no object, has a key twice, a number that is not
    finite or has too many digits, half a surrogate pair, or is nested too deeply.

    >>> parse_object(b'{"a": [1, null]}', "x.json")
    {'a': [1, None]}
    >>> parse_object(b'{"a": 1, "a": 2}', "x.json")
    Traceback (most recent call last):
    ...
    squtr.errors.DataError: x.json has the key 'a' twice in one object. Submit the file as squtr wrote it.
    """

    def refuse(what: str) -> NoReturn:
        raise DataError(f"{name} {what}.", hint=_HINT)

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in found:
            if key in made:
                refuse(f"has the key {shown(key)} twice in one object")
            made[key] = value
        return made

    def real(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            refuse(f"holds the number {shown(text)}, which is not finite")
        return value

    def whole(text: str) -> int:
        if len(text) > MOST_DIGITS:
            refuse(f"holds a number of {len(text)} digits")
        return int(text)

    def constant(text: str) -> NoReturn:
        refuse(f"holds {text}, which JSON does not have; what is undefined is null")

    try:
        text = content.decode("utf-8")
        value = json.loads(text, object_pairs_hook=pairs, parse_float=real, parse_int=whole, parse_constant=constant)
        depth = _depth(value)
    except UnicodeDecodeError:
        refuse("is not UTF-8")
    except json.JSONDecodeError as error:
        refuse(f"is no JSON: {error.msg} in line {error.lineno}")
    except RecursionError:
        refuse(f"is nested more than {MOST_DEPTH} levels deep")
    if depth > MOST_DEPTH:
        refuse(f"is nested more than {MOST_DEPTH} levels deep")
    if not isinstance(value, dict):
        refuse("holds no JSON object")
    if "\\ud" in text.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            refuse("holds half a surrogate pair")
    return value


def _depth(value: Any) -> int:
    """How deeply a value is nested, without recursion; stops counting beyond the limit."""
    depth, level = 0, [value]
    while level and depth <= MOST_DEPTH:
        depth += 1
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return depth


def shown(value: object, most: int = 60) -> str:
    """A value from a file as it may stand in a message: one line, short, without control or invisible characters.

    >>> shown("a\\x1b[31mb"), shown("x" * 99, 8)
    ("'a\\\\x1b[31mb'", "'xxxx...")
    """
    text = ascii(value) if any(is_hidden(char) for char in str(value)) else repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def is_hidden(char: str) -> bool:
    """Whether a character is a control, a direction mark, or another that cannot be seen."""
    return unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def wrong_name(name: str) -> str:
    """Why a name cannot be shown in a table, as a clause; "" if it can.

    Names are what people read and link to, so they are plain text on one line: nothing invisible, no text direction
    marks, no `<` or `>`.

    >>> wrong_name("whisper-base + BM25"), wrong_name("BM25 (结巴)")
    ('', '')
    >>> wrong_name("<b>x</b>")
    "holds '<'"
    """
    if not name.strip() or name != name.strip():
        return "is empty, or begins or ends with a blank"
    if len(name) > MOST_NAME:
        return f"has {len(name)} characters, at most {MOST_NAME} are shown"
    for char in name:
        if char in "<>":
            return f"holds {char!r}"
        if is_hidden(char):
            return f"holds the character U+{ord(char):04X}, which cannot be seen"
    return ""
