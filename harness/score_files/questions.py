"""Files of questions with options or verifiers, and of replies. JSONL or Parquet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import DataError, SqutrError
from ...loaders.questions.labels import PERCEPTION_SPELLINGS, REASONING_SPELLINGS, canonical
from ...loaders.questions.spellings import AETIOLOGIES, INTELLIGIBILITY_OF, SEXES_OF
from ..tasks.understanding.answers.accuracy import McqaItem, answer_index
from ..tasks.understanding.answers.following import AifItem
from ..tasks.understanding.answers.items import Item, Reply
from ..tasks.understanding.answers.labels import ItemLabels
from ..tasks.understanding.answers.option_text import LETTERS
from ..tasks.understanding.answers.verifiers.registry import load_verifier
from .lines import Remark, finite, id_field, no_remark, read_rows

_SPELLINGS = {
    "perception": ("perception", "percepcion", "percepción", "perception_labels"),
    "reasoning": ("reasoning", "razonamiento", "reasoning_labels"),
    "comparative": ("comparative", "comparativa"),
    "aetiology": ("aetiology", "etiology", "etiologia", "etiología"),
    "intelligibility": ("intelligibility", "inteligibilidad"),
    "sex": ("sex", "gender", "sexo"),
    "duration_s": ("duration_s", "duration", "duracion_s", "duración_s"),
}
"""Fields of an item that make slices, each with the spellings that are understood."""
_TRUTHS = {True: True, False: False, "yes": True, "no": False, "sí": True, "true": True, "false": False}


def read_mcqa_items(path: Path, *, by: Sequence[str] = (), remark: Remark = no_remark) -> list[McqaItem]:
    """Questions `{"id": …, "options": […], "answer": …}`, the answer an option's text or its letter.

    Optional are `missing_audio` (true), `spoken_of` (the id of the written question) and the labels of `_SPELLINGS`;
    `by` names more fields to make slices of. Raises `DataError` naming file and line, also for an id that stands
    twice, options that are blank or equal, and an answer that is none of them or could be two.
    """
    found: list[McqaItem] = []
    for where, id_, row in _items(path, remark):
        options = _texts(row, "options", where)
        answer = row.get("answer")
        if not isinstance(answer, str):
            raise DataError(
                f"{where}: the answer of {id_!r} is {answer!r}.", hint="Give an option's text, or its letter (A, B, …)."
            )
        try:
            index = answer_index(answer, options)
        except SqutrError as error:
            raise DataError(f"{where}: item {id_!r}: {error.message}", hint=error.hint) from error
        spoken_of = id_field(row, ("spoken_of",), where) if row.get("spoken_of") not in (None, "") else ""
        if spoken_of == id_:
            raise DataError(f"{where}: item {id_!r} is `spoken_of` itself.", hint="Name the written question.")
        labels, gone = _labels(row, by, where), _truth(row, "missing_audio", where)
        found.append(McqaItem(id_, tuple(options), index, labels, bool(gone), spoken_of))
    return found


def read_aif_items(path: Path, *, by: Sequence[str] = (), remark: Remark = no_remark) -> list[AifItem]:
    """Questions `{"id": …, "verifiers": [{"id": …, …arguments}]}`, with the optional fields of `read_mcqa_items`.

    Raises `DataError` naming file and line, also for an unknown verifier or wrong arguments.
    """
    found: list[AifItem] = []
    for where, id_, row in _items(path, remark):
        given = row.get("verifiers")
        if not isinstance(given, list) or not given or not all(isinstance(each, dict) for each in given):
            raise DataError(
                f"{where}: the verifiers of {id_!r} are {given!r}.", hint='Give a list like [{"id": "uppercase"}].'
            )
        verifiers = []
        for each in given:
            name = each.get("id")
            if not isinstance(name, str):
                raise DataError(f"{where}: a verifier of {id_!r} has the id {name!r}.", hint="Ids are texts.")
            try:
                verifiers.append(load_verifier(name, {key: value for key, value in each.items() if key != "id"}))
            except SqutrError as error:
                raise DataError(f"{where}: item {id_!r}: {error.message}", hint=error.hint) from error
        labels, gone = _labels(row, by, where), _truth(row, "missing_audio", where)
        found.append(AifItem(id_, tuple(verifiers), labels, bool(gone)))
    return found


def read_replies(path: Path, items: Sequence[Item], *, remark: Remark = no_remark) -> list[Reply]:
    """Replies `{"id": …, "reply": …}` to `items`; null is none.

    `order` (a list of places from 0, or letters) says which option stood where, if not in the item's own order; one
    item may have several replies then. `missing_audio` (true) says that there was nothing to ask about. Raises
    `DataError` naming file and line for an id that is not among the items, one that stands twice in one order, and a
    reply to an item whose audio is missing.
    """
    sizes = {item.id: len(item.options) if isinstance(item, McqaItem) else 0 for item in items}
    gone = {item.id: "the items" for item in items if item.missing_audio}
    seen: dict[tuple[str, tuple[int, ...] | None], str] = {}
    found: list[Reply] = []
    for where, row in read_rows(path, _format(path), remark):
        id_ = id_field(row, ("id", "_id"), where)
        if id_ not in sizes:
            raise DataError(f"{where}: there is no item {id_!r}.", hint="Check that the ids are those of the items.")
        if "reply" not in row and not row.get("missing_audio"):
            raise DataError(f"{where}: there is no field 'reply', only {', '.join(row)}.", hint="Name the field so.")
        text = row.get("reply")
        if text is not None and not isinstance(text, str):
            raise DataError(f"{where}: the reply to {id_!r} is {text!r}.", hint="Give a text, or null for none.")
        order = _order(row.get("order"), sizes[id_], where)
        if (id_, order) in seen:
            raise DataError(
                f"{where}: id {id_!r} stands in {seen[id_, order]} too.", hint="Give one reply per item and order."
            )
        seen[id_, order] = where
        missing = bool(_truth(row, "missing_audio", where))
        if missing:
            gone.setdefault(id_, where)
        found.append(Reply(id_, text, order, missing))
    for (id_, _), reply in zip(seen, found, strict=True):
        if id_ in gone and reply.text is not None:
            raise DataError(
                f"{seen[id_, reply.order]}: a reply to {id_!r}, whose audio is missing according to {gone[id_]}.",
                hint="Give either a reply or `missing_audio`.",
            )
    return found


def _format(path: Path) -> str:
    return "parquet" if path.suffix.lower() == ".parquet" else "jsonl"


def _items(path: Path, remark: Remark) -> list[tuple[str, str, dict[str, Any]]]:
    """Place, id and fields of every row."""
    seen: dict[str, str] = {}
    found = []
    for where, row in read_rows(path, _format(path), remark):
        id_ = id_field(row, ("id", "_id"), where)
        if id_ in seen:
            raise DataError(f"{where}: id {id_!r} stands in {seen[id_]} too.", hint="Give each item once.")
        seen[id_] = where
        found.append((where, id_, row))
    if not found:
        raise DataError(f"{path} holds no items.", hint="Give one JSON object per line, each with its id.")
    return found


def _texts(row: Mapping[str, Any], field: str, where: str) -> list[str]:
    value = row.get(field)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise DataError(f"{where}: the field {field!r} is {value!r}.", hint="Give a list of texts.")
    return value


def _order(value: Any, size: int, where: str) -> tuple[int, ...] | None:
    if value is None:
        return None
    places = value if isinstance(value, list) else list(value) if isinstance(value, str) else []
    found = [_place(each) for each in places]
    if sorted(found) != list(range(size)):
        raise DataError(
            f"{where}: the order {value!r} is not one of {size} options.",
            hint=f"Give each place from 0 to {size - 1} once, or each letter." if size else "Only options have one.",
        )
    # The item's own order, written or not, is the same one.
    return None if found == list(range(size)) else tuple(found)


def _place(value: Any) -> int:
    """The place that a number or letter names; -1 for anything else."""
    if isinstance(value, str) and len(value) == 1:
        return LETTERS.find(value.upper())
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _truth(row: Mapping[str, Any], field: str, where: str) -> bool | None:
    value = row.get(field)
    if value is None or value == "":
        return None
    key = value.lower() if isinstance(value, str) else value
    if not isinstance(key, bool | str | int) or key not in _TRUTHS:
        raise DataError(f"{where}: the field {field!r} is {value!r}.", hint="Give true or false.")
    return _TRUTHS[key]


def _labels(row: Mapping[str, Any], by: Sequence[str], where: str) -> ItemLabels:
    named = {
        field: next((key for key in keys if row.get(key) is not None), field) for field, keys in _SPELLINGS.items()
    }
    one = {
        field: canonical(" ".join(_label(row, named[field], where)), known)
        for field, known in (("aetiology", AETIOLOGIES), ("intelligibility", INTELLIGIBILITY_OF), ("sex", SEXES_OF))
    }
    duration = row.get(named["duration_s"])
    return ItemLabels(
        perception=tuple(canonical(each, PERCEPTION_SPELLINGS) for each in _label(row, named["perception"], where)),
        reasoning=tuple(canonical(each, REASONING_SPELLINGS) for each in _label(row, named["reasoning"], where)),
        comparative=_truth(row, named["comparative"], where),
        duration_s=math.nan if duration is None or duration == "" else finite(duration, "duration", where),
        more={field: tuple(_label(row, field, where)) for field in by},
        **one,
    )


def _label(row: Mapping[str, Any], field: str, where: str) -> list[str]:
    """The labels in a field: a text (several with | or ; between), a list of texts, a number or truth value."""
    value = row.get(field)
    if value is None:
        return []
    if isinstance(value, str):
        return [each.strip() for each in value.replace(";", "|").split("|") if each.strip()]
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return [each.strip() for each in value if each.strip()]
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, int | float) and math.isfinite(value):
        return [f"{value:g}"]
    raise DataError(f"{where}: the field {field!r} is {value!r}.", hint="Give a text, or a list of texts.")
