"""Replies that were made elsewhere: by people, or by a model that was asked without this harness."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ....errors import DataError
from ....loaders.text import parse_json, tell_replaced
from ...protocols import ComponentSpec, Reply
from ..path_patterns import Missing, check_missing, refuse_missing
from ..transcribers.common import SAMPLE_RATE

Key = tuple[str, bool, tuple[int, ...] | None]
"""Item id, whether its question was spoken, the order in which its options were shown (None: its own)."""


class RepliesFile:
    """A JSONL file with `{"id": …, "reply": …}` per line.

    Optional are `order` (places from 0: which option was shown where), `spoken` (true: the answer to the spoken
    question) and `error` (why there is no reply). One item may have a line per order, and one for its spoken question.
    `missing` says what becomes of a question without a line: "error", or "count": it has no reply.
    """

    sample_rate = SAMPLE_RATE

    def __init__(self, path: str | Path, *, missing: Missing = "error") -> None:
        check_missing(missing)
        self._path, self._missing = Path(path), missing

    @cached_property
    def spec(self) -> ComponentSpec:
        return ComponentSpec("answerer", "replies", self._path.stem, self._path.name, self._content[1])

    def supports(self, language: str) -> bool:
        return True

    def reply_of(self, id_: str, *, spoken: bool, order: tuple[int, ...] | None) -> Reply | None:
        """The reply to an item, None where the file has none."""
        return self._replies.get((id_, spoken, order))

    def refuse_missing(self, missing: Sequence[str], wanted: int) -> None:
        """Raise `DataError` for questions without a line, unless they are to be counted."""
        if self._missing == "error":
            refuse_missing(f"no reply in {self._path}", missing, wanted, self.ids)

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(id_ for id_, _, _ in self._replies)

    @cached_property
    def _content(self) -> tuple[bytes, str]:
        try:
            content = self._path.read_bytes()
        except OSError as error:
            raise DataError(f"{self._path} cannot be read: {error.strerror}.", hint="Check the path.") from error
        return content, hashlib.sha256(content).hexdigest()

    @cached_property
    def _replies(self) -> dict[Key, Reply]:
        found: dict[Key, Reply] = {}
        replaced: list[str] = []
        for number, line in enumerate(self._content[0].removeprefix(codecs.BOM_UTF8).splitlines(), start=1):
            if not line.strip():
                continue
            where = f"{self._path}, line {number}"
            try:
                row: Any = parse_json(line.decode("utf-8"), where, replaced)
            except DataError:
                raise
            except ValueError as error:
                raise DataError(f"{where} is no JSON: {error}.", hint="Write one object per line.") from error
            if not isinstance(row, dict) or not isinstance(row.get("id"), str):
                raise DataError(f"{where} has no id.", hint='Write {"id": "…", "reply": "…"}.')
            text, error_ = row.get("reply"), row.get("error") or ""
            if not (text is None or isinstance(text, str)) or not isinstance(error_, str):
                raise DataError(f"{where}: the reply is {text!r}.", hint="Give a text, or null for none.")
            order = _order(row.get("order"), where)
            key = (row["id"], row.get("spoken") is True, order)
            if key in found:
                raise DataError(f"{where}: {row['id']!r} was answered before.", hint="Keep one line.")
            found[key] = Reply(text or "", error=error_ or ("no reply" if text is None else ""))
        tell_replaced(replaced, str(self._path))
        return found


def _order(value: Any, where: str) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or sorted(map(str, value)) != sorted(map(str, range(len(value)))):
        raise DataError(f"{where}: the order is {value!r}.", hint="Give each place from 0 once, as numbers.")
    order = tuple(int(place) for place in value)
    return None if order == tuple(range(len(order))) else order
