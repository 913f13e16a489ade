"""Transcripts that a user's own system made: JSON lines with id and text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ....errors import DataError, unknown_name
from ....loaders.jsonl import text_field
from ...metrics.flags import repeats_itself
from ...protocols import ComponentSpec, Hypothesis, Transcript
from ..batches import require_positive
from ..path_patterns import FilePattern, Missing, check_missing, refuse_missing
from .common import LOOP_SETTINGS
from .file_rows import transcript_rows

_FIELDS = frozenset({"id", "text", "subset", "condition", "error", "hypotheses", "confidence", "truncated"})

_Key = tuple[str, str, str]
"""(subset, condition, id); "" is one that a line does not name."""


class TranscriptsFile:
    """Precomputed transcripts by query id.

    `path` is a file, or a pattern with `{subset}`, `{condition}`, `{language}` or `{config}` (`<subset>_<condition>` or
    `<language>_<condition>`), such as `my-asr/{subset}/{condition}.jsonl`: JSON lines, or NIST's TRN (`.trn`) or CTM
    (`.ctm`, whose words are joined). A line has

    - `id`: the query's id, and `text`: the transcript, "" if there are no words;
    - `subset`, `condition`: where the id belongs, if the path does not say so. A file whose lines and path name no
      condition is the transcripts of one condition, and is refused for a second;
    - `error`: why there is no text (then leave `text` out);
    - `hypotheses`: the n best, best first, each `{"text": …, "score": log-probability}`; `text` is the first of them;
    - `confidence`: the geometric mean probability of the text's tokens, in [0, 1], if it is known;
    - `truncated`: true if the length cap cut the text.

    `n_best` hypotheses are used. A query whose line has an `error` is a failed one. `missing` says what becomes of a
    query without a line: "error" (`DataError`), or "count": it is a failed one.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        name: str = "",
        n_best: int = 1,
        missing: Missing = "error",
        languages: Mapping[str, str] | None = None,
    ) -> None:
        require_positive(n_best=n_best)
        check_missing(missing)
        self._missing = missing
        self._files = FilePattern(path, what="transcripts", languages=languages)
        self._name = name
        self._n_best = n_best
        self._read: tuple[Path, Mapping[_Key, Transcript]] | None = None
        self._unlabeled: dict[Path, str] = {}

    @cached_property
    def spec(self) -> ComponentSpec:
        revision = self._files.revision()
        settings: dict[str, int | float] = {"n_best": self._n_best} if self._n_best > 1 else {}
        return ComponentSpec(
            "transcriber",
            "transcripts",
            self._name or self._files.default_name,
            self._files.model,
            revision,
            {**settings, **LOOP_SETTINGS},
        )

    def supports(self, language: str) -> bool:
        return bool(language)

    def transcripts(self, subset: str, condition: str, query_ids: Sequence[str]) -> list[Transcript]:
        file = self._files.file(subset, condition)
        rows = self._rows(file)
        places = ((subset, condition), (subset, ""), ("", condition), ("", ""))
        found: list[Transcript] = []
        absent: list[str] = []
        for query_id in query_ids:
            place = next((p for p in places if (*p, query_id) in rows), None)
            if place is None:
                absent.append(query_id)
                found.append(Transcript("", error=f"no transcript in {self._files.relative(file)}"))
                continue
            if not place[1] and not self._names_condition:
                self._check_condition(file, condition)
            found.append(rows[(*place, query_id)])
        if self._missing == "error":
            what = f"no transcript of {subset} under {condition} in {file}"
            refuse_missing(what, absent, len(found), {id_ for _, _, id_ in rows})
        return found

    def _check_condition(self, file: Path, condition: str) -> None:
        """A transcript cannot be that of two conditions."""
        known = self._unlabeled.setdefault(file, condition)
        if known != condition:
            raise DataError(
                f"{file} names no condition: it was taken for {known} and cannot be {condition} too.",
                hint="Add the field 'condition' to its lines, or write {condition} in the path.",
            )

    @property
    def _names_condition(self) -> bool:
        return bool({"condition", "config"} & self._files.names)

    def _rows(self, file: Path) -> Mapping[_Key, Transcript]:
        if self._read is None or self._read[0] != file:
            self._read = (file, self._parsed(file))
        return self._read[1]

    def _parsed(self, file: Path) -> Mapping[_Key, Transcript]:
        rows: dict[_Key, Transcript] = {}
        lines: dict[_Key, int] = {}
        for number, row in transcript_rows(file):
            place = f"{file}, line {number}"
            for field in row:
                if field not in _FIELDS:
                    error = unknown_name("field", field, _FIELDS)
                    raise DataError(f"{place}: {error.message}", hint=error.hint)
            query_id = text_field(row, "id", place)
            key = (
                text_field(row, "subset", place, default=""),
                text_field(row, "condition", place, default=""),
                query_id,
            )
            if key in rows:
                raise DataError(
                    f"{place}: the id {query_id!r} occurs twice, first in line {lines[key]}.",
                    hint="Leave one line, or tell them apart by the fields 'subset' and 'condition'.",
                )
            rows[key] = self._transcript(row, place)
            lines[key] = number
        return rows

    def _transcript(self, row: Mapping[str, Any], place: str) -> Transcript:
        error = text_field(row, "error", place, default="")
        hypotheses = tuple(_hypotheses(row.get("hypotheses", []), place))
        default = "" if error else hypotheses[0].text if hypotheses else None
        text = text_field(row, "text", place, default=default).strip()
        if error and (text or hypotheses):
            raise DataError(
                f"{place}: there are both an error and a text.", hint="Leave out 'error', or 'text' and 'hypotheses'."
            )
        if hypotheses and hypotheses[0].text != text:
            raise DataError(
                f"{place}: text is not the first of the hypotheses.", hint="Leave 'text' out: the first is taken."
            )
        kept = hypotheses[: self._n_best] if self._n_best > 1 else ()
        confidence = _confidence(row, place)
        cut = row.get("truncated", False)
        if not isinstance(cut, bool):
            raise DataError(f"{place}: 'truncated' is {cut!r}.", hint="Write true or false, or leave it out.")
        return Transcript(
            text, error=error, loop=repeats_itself(text), truncated=cut, hypotheses=kept, confidence=confidence
        )


def _confidence(row: Mapping[str, Any], place: str) -> float:
    value = row.get("confidence", math.nan)
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 <= value <= 1 or math.isnan(value)):
        raise DataError(f"{place}: the confidence {value!r} is no number in [0, 1].", hint="Mend the line.")
    return float(value)


def _hypotheses(value: object, place: str) -> Iterator[Hypothesis]:
    if not isinstance(value, list):
        raise DataError(f"{place}: 'hypotheses' is no list.", hint="Mend the line.")
    last = math.inf
    for item in value:
        if not isinstance(item, dict) or set(item) != {"text", "score"}:
            raise DataError(f"{place}: a hypothesis is an object with 'text' and 'score'.", hint="Mend the line.")
        score = item["score"]
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise DataError(f"{place}: the score {score!r} of a hypothesis is no number.", hint="Mend the line.")
        if score > last:
            raise DataError(f"{place}: the hypotheses are not sorted by score.", hint="Write the best first.")
        last = score
        yield Hypothesis(text_field(item, "text", place).strip(), float(score))
