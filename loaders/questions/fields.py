"""From a row of a table to a `Question`, and back; `spellings` lists the names under which each field is found."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from ...errors import DataError, UsageError, nearest, unknown_name
from ..keyed import keyed_rng
from ..records import NAN
from .labels import PERCEPTION_SPELLINGS, REASONING_SPELLINGS, plain_name
from .question import Kind, Question, check_question, same_text
from .spellings import (
    AETIOLOGIES,
    AUDIO_ENDINGS,
    FIELD_OF,
    IGNORED,
    INTELLIGIBILITY_OF,
    KINDS_OF,
    MISSING,
    NORMATIVE,
    NOTHING,
    OPTION_OF,
    SEXES_OF,
    SPELLINGS,
    TEXTS,
)


def question_of(row: Mapping[str, Any], place: str, *, extra: Mapping[str, str] | None = None) -> Question:
    """The question that a row of a table holds; `place` ("FILE, line 3") is what errors call a row without an id.

    Missing and empty values become NaN, "" or (). A clip without a name has the item's id (`<id>_1` and `<id>_2` for
    two addresses). Options may be one list, a column each, or answer and distractors:
    these have no published order, so theirs is drawn by the item's id. An answer may be the text of an option, its
    letter, or its number from 0 under `answer_index`. Raises `DataError` naming item and field for a spelling that is
    not known, a field that is missing, or a value that cannot be used.
    """
    fields, columns = _by_field(row, place, extra or {})
    id_ = _option(fields.get("id"))
    if not id_:
        raise DataError(f"{place}: the field id is missing.", hint=f"Known spellings: {', '.join(SPELLINGS['id'])}.")
    item = f"item {id_!r}"
    verifiers = _verifiers(fields, item)
    kind = _kind(fields.get("kind"), bool(verifiers), item)
    options, answer = _options(fields, columns, id_, item) if kind == "mcqa" else ((), "")
    perception, reasoning = _labels(fields, item)
    audios, question_audio = _audio_of(fields, item)
    durations = tuple(_number(value, "audio_durations_s", item) for value in _members(fields.get("audio_durations_s")))
    lengths = [_number(value, "duration_s", item) for value in _list(fields.get("duration_s"))]
    if question_audio:
        # A list may count the spoken question, which is not what the question is about.
        durations, lengths = durations[: len(audios)], lengths[: len(audios)]
    if len(lengths) == len(audios) and not durations:
        durations = tuple(lengths)
    duration_s = math.fsum(lengths) if lengths else math.fsum(durations) if durations else NAN
    aetiology = _aetiology(fields, item)
    question = Question(
        id=id_,
        kind=kind,
        audios=audios,
        question=_option(fields.get("question")),
        options=options,
        answer=answer,
        verifiers=verifiers,
        perception=perception,
        reasoning=reasoning,
        question_audio=question_audio,
        question_voice=_text(fields.get("question_voice")),
        aetiology=aetiology,
        intelligibility=_named(fields.get("intelligibility"), INTELLIGIBILITY_OF, "intelligibility", item),
        sex=_named(fields.get("sex"), SEXES_OF, "sex", item),
        duration_s=duration_s,
        duration_bin=_text(fields.get("duration_bin")),
        source_urls=_urls(fields, len(audios), item),
        audio_durations_s=durations,
        open_ended=_flag(fields.get("open_ended"), "open_ended", item) or False,
    )
    _check_flags(question, fields, item)
    return check_question(question)


def check_extra(extra: Mapping[str, str]) -> dict[str, str]:
    """`extra` with its spellings as `plain_name` writes them. Raises `UnknownNameError` for a field that is none."""
    for field in extra.values():
        if field != IGNORED and field not in SPELLINGS:
            raise unknown_name("field", field, [*SPELLINGS, IGNORED])
    if not all(plain_name(spelling) for spelling in extra):
        raise UsageError("a spelling is empty.", hint="Write SPELLING=FIELD.")
    return {plain_name(spelling): field for spelling, field in extra.items()}


def _by_field(row: Mapping[str, Any], place: str, extra: Mapping[str, str]) -> tuple[dict[str, Any], dict[int, str]]:
    own = check_extra(extra)
    fields: dict[str, Any] = {}
    columns: dict[int, str] = {}
    written: dict[str, str] = {}
    item = place
    for key, value in row.items():
        if FIELD_OF.get(plain_name(str(key))) == "id" and _option(value):
            item = f"item {_option(value)!r}"
    for key, value in row.items():
        name = plain_name(str(key))
        field = own.get(name) or FIELD_OF.get(name)
        if name == "answer_index" and name not in own:
            field = name
        if field == IGNORED:
            continue
        if field is None and name in OPTION_OF:
            if not _is_blank(value) and (text := _option(value)):
                columns[OPTION_OF[name]] = text
            continue
        if field is None:
            guess = nearest(name, FIELD_OF)
            raise DataError(
                f"{item}: the field {key!r} is not known.",
                hint=f"{f'Is it {guess!r}? ' if guess else ''}Teach it with --field {key}=FIELD (- leaves it out); "
                f"fields: {', '.join(SPELLINGS)}.",
            )
        # "None" and "na" may be an answer; elsewhere they are how tables write nothing.
        if _is_blank(value) if field in TEXTS else _is_nothing(value):
            continue
        if field in fields and fields[field] != value:
            raise DataError(
                f"{item}: the fields {written[field]!r} and {key!r} both give {field}, and differ.",
                hint=f"Leave one out with --field {key}=-.",
            )
        fields[field], written[field] = value, str(key)
    return fields, columns


def _is_nothing(value: Any) -> bool:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    if isinstance(value, str):
        return value.strip().casefold() in NOTHING
    return isinstance(value, list | tuple | dict) and not value


def _text(value: Any) -> str:
    if _is_nothing(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _option(value: Any) -> str:
    return value.strip() if isinstance(value, str) else _text(value)


def _list(value: Any) -> list[Any]:
    """A list without empty members, also written as JSON, as Python writes it, or with `|`, `;` or line ends."""
    return [member for member in _members(value) if not _is_blank(member)]


def _is_blank(value: Any) -> bool:
    return _is_nothing(value) and (not isinstance(value, str) or not value.strip())


def _members(value: Any) -> list[Any]:
    if _is_nothing(value):
        return []
    if isinstance(value, list | tuple):
        return list(value)
    if not isinstance(value, str):
        return [value]
    text = value.strip()
    if text[0] in "[(" and text[-1] in "])":
        for read in (json.loads, ast.literal_eval):
            try:
                found = read(text)
            except (ValueError, SyntaxError):
                continue
            if isinstance(found, list | tuple):
                return list(found)
    for separator in ("\n", "|", ";"):
        if separator in text:
            return [part.strip() for part in text.split(separator) if part.strip()]
    return [text]


def _number(value: Any, field: str, item: str) -> float:
    if _is_nothing(value):
        return NAN
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise DataError(f"{item}: {field} is {value!r}.", hint="Give a number of seconds.") from error
    return number


def _flag(value: Any, field: str, item: str) -> bool | None:
    if _is_nothing(value):
        return None
    if isinstance(value, bool):
        return value
    name = plain_name(str(value))
    if name in {"true", "yes", "si", "1", "verdadero"}:
        return True
    if name in {"false", "no", "0", "falso"}:
        return False
    raise DataError(f"{item}: {field} is {value!r}.", hint="Write true or false.")


def _named(value: Any, known: Mapping[str, str], field: str, item: str) -> str:
    name = plain_name(_text(value))
    if not name or name in MISSING:
        return ""
    if name not in known:
        raise DataError(
            f"{item}: {field} is {value!r}.", hint=f"Known: {', '.join(dict.fromkeys(known.values()))}; or empty."
        )
    return known[name]


def _kind(value: Any, has_verifiers: bool, item: str) -> Kind:
    if _is_nothing(value):
        return "aif" if has_verifiers else "mcqa"
    kind = KINDS_OF.get(plain_name(str(value)))
    if kind is None:
        raise DataError(f"{item}: kind is {value!r}.", hint="Known: mcqa, aif, and spellings of these.")
    return kind


def _verifiers(fields: Mapping[str, Any], item: str) -> tuple[Mapping[str, Any], ...]:
    """The verifiers as objects `{"id": …, arguments …}`: written so, or ids with their arguments in another field."""
    value = fields.get("verifiers")
    members = _objects(value) if isinstance(value, str) and value.strip()[:1] in "[{" else _list(value)
    if isinstance(value, Mapping):
        members = [value]
    given = fields.get("arguments")
    listed = _objects(given) if isinstance(given, str) else [given] if isinstance(given, Mapping) else _members(given)
    if listed and len(listed) != len(members):
        raise DataError(
            f"{item}: verifiers has {len(members)} members and arguments {len(listed)}.", hint="Give one for each."
        )
    found: list[Mapping[str, Any]] = []
    for number, written in enumerate(members):
        arguments = listed[number] if listed else {}
        member = {"id": written.strip()} if isinstance(written, str) else written
        if not isinstance(member, Mapping) or not isinstance(arguments, Mapping):
            raise DataError(f"{item}: verifiers holds {member!r}.", hint="Write ids, or objects with an 'id'.")
        found.append({**member, **{key: value for key, value in arguments.items() if value is not None}})
    return tuple(found)


def _objects(text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return _list(text)
    return value if isinstance(value, list) else [value]


def _options(fields: Mapping[str, Any], columns: Mapping[int, str], id_: str, item: str) -> tuple[tuple[str, ...], str]:
    listed = fields.get("options")
    if isinstance(listed, Mapping):
        listed = list(listed.values())
    elif isinstance(listed, str) and listed.strip().startswith("{"):
        found = _objects(listed)[0]
        listed = list(found.values()) if isinstance(found, Mapping) else listed
    options = tuple(_option(option) for option in _list(listed)) or tuple(columns[key] for key in sorted(columns))
    distractors = tuple(_option(option) for option in _list(fields.get("distractors")))
    answer = _option(fields.get("answer"))
    if not options and distractors:
        if not answer:
            raise DataError(f"{item}: the field answer is missing.", hint="Give the right answer beside distractors.")
        unordered = sorted({answer, *distractors})
        order = keyed_rng(0, "question options", id_).permutation(len(unordered))
        options = tuple(unordered[place] for place in order)
    if not options:
        raise DataError(
            f"{item}: the field options is missing.",
            hint="Give options, a column each (option_a, …), or answer and distractors; an instruction has verifiers.",
        )
    return options, _answer(answer, fields.get("answer_index"), options, item)


def _answer(answer: str, index: Any, options: tuple[str, ...], item: str) -> str:
    """The option that is meant: by its text, else by its letter, else by a number under `answer_index`."""
    if not _is_nothing(index):
        place = _number(index, "answer_index", item)
        if not place.is_integer() or not 0 <= place < len(options):
            raise DataError(f"{item}: answer_index is {index!r} for {len(options)} options.", hint="Count from 0.")
        named = options[int(place)]
        if answer and same_text(answer) != same_text(named):
            raise DataError(f"{item}: answer is {answer!r} and answer_index names {named!r}.", hint="Mend one.")
        return named
    if not answer:
        raise DataError(
            f"{item}: the field answer is missing.", hint=f"Known spellings: {', '.join(SPELLINGS['answer'])}."
        )
    for option in options:
        if same_text(option) == same_text(answer):
            return option
    letter = answer.strip("().: ").upper()
    if len(letter) == 1 and letter.isascii() and "A" <= letter <= "Z" and ord(letter) - ord("A") < len(options):
        return options[ord(letter) - ord("A")]
    return answer


def _labels(fields: Mapping[str, Any], item: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    perception = [_label(name, PERCEPTION_SPELLINGS, "perception", item) for name in _list(fields.get("perception"))]
    reasoning = [_label(name, REASONING_SPELLINGS, "reasoning", item) for name in _list(fields.get("reasoning"))]
    for name in _list(fields.get("labels")):
        plain = plain_name(str(name))
        if plain in PERCEPTION_SPELLINGS:
            perception.append(PERCEPTION_SPELLINGS[plain])
        else:
            reasoning.append(_label(name, REASONING_SPELLINGS, "labels", item))
    return tuple(dict.fromkeys(perception)), tuple(dict.fromkeys(reasoning))


def _label(name: Any, known: Mapping[str, str], field: str, item: str) -> str:
    label = known.get(plain_name(str(name)))
    if label is None:
        guess = nearest(plain_name(str(name)), known)
        raise DataError(
            f"{item}: {field} has the unknown label {name!r}.",
            hint=f"{f'Did you mean {known[guess]!r}? ' if guess else ''}Known: "
            f"{', '.join(dict.fromkeys(known.values()))}.",
        )
    return label


def _audios(fields: Mapping[str, Any], item: str) -> tuple[str, ...]:
    named = [*_list(fields.get("audios")), *_list(fields.get("audio_2"))]
    spoken = _audio_id(_text(fields.get("question_audio")))
    # In the published prompts of the spoken questions the question is the second clip of the list.
    audios = tuple(audio for audio in (_audio_id(_option(name)) for name in named) if audio != spoken or not spoken)
    if audios:
        return audios
    # Without a name, the audio is called as the item whose address it was fetched from.
    urls = len(_list(fields.get("source_urls"))) + len(_list(fields.get("source_url_2")))
    id_ = _option(fields.get("id"))
    if urls:
        return (id_,) if urls == 1 else tuple(f"{id_}_{number}" for number in range(1, urls + 1))
    raise DataError(f"{item}: the field audios is missing.", hint=f"Known spellings: {', '.join(SPELLINGS['audios'])}.")


def _audio_id(name: str) -> str:
    """A clip's id: its file name without folder and ending.

    >>> _audio_id("audio/0001.wav"), _audio_id("v1.2")
    ('0001', 'v1.2')
    """
    file = PurePosixPath(name.replace("\\", "/")).name
    ending = next((ending for ending in AUDIO_ENDINGS if file.lower().endswith(ending)), "")
    return file[: len(file) - len(ending)]


def _urls(fields: Mapping[str, Any], audios: int, item: str) -> tuple[str, ...]:
    urls = tuple(_text(url) for url in (*_list(fields.get("source_urls")), *_list(fields.get("source_url_2"))))
    if len(urls) == 1 and audios == 2:
        # Both clips are of one recording, or only one is known: that cannot be told apart.
        return (urls[0], "")
    if len(urls) > audios:
        raise DataError(f"{item}: source_urls has {len(urls)} members for {audios} audios.", hint="Give one for each.")
    return urls


def _aetiology(fields: Mapping[str, Any], item: str) -> str:
    name = plain_name(_text(fields.get("aetiology")))
    if name in NORMATIVE:
        name = ""
    flag = _flag(fields.get("non_normative"), "non_normative", item)
    if flag is False and name:
        raise DataError(f"{item}: aetiology is {name!r} and non_normative is false.", hint="Mend one.")
    if flag and not name:
        return "unknown"
    return AETIOLOGIES.get(name, name)


def _audio_of(fields: Mapping[str, Any], item: str) -> tuple[tuple[str, ...], str]:
    """What the question is about, and the spoken question ("" if it is not spoken)."""
    audios = _audios(fields, item)
    question_audio = _audio_id(_text(fields.get("question_audio")))
    spoken, compared = (_flag(fields.get(name), name, item) for name in ("spoken", "comparative"))
    if spoken and not compared and not question_audio and len(audios) == 2:
        # As the paper has it: the question is the second clip.
        return audios[:1], audios[1]
    return audios, question_audio


def _check_flags(question: Question, fields: Mapping[str, Any], item: str) -> None:
    for field, holds, why in (
        ("comparative", question.comparative, f"it has {len(question.audios)} audios"),
        ("spoken", question.spoken, "question_audio is missing" if not question.spoken else "it has a question_audio"),
    ):
        flag = _flag(fields.get(field), field, item)
        if flag is not None and flag != holds:
            raise DataError(f"{item}: {field} is {str(flag).lower()}, but {why}.", hint="Mend one.")


def row_of(question: Question) -> dict[str, Any]:
    """A question as a row that `question_of` reads back; what does not apply is left out.

    >>> row_of(Question("q1", "mcqa", ("a",), "¿Qué?", ("Sí", "No"), "No", (), ("lexical",), ("logic",)))["options"]
    ['Sí', 'No']
    """
    row: dict[str, Any] = {"id": question.id, "kind": question.kind, "audios": list(question.audios)}
    row["question"] = question.question
    for field in ("options", "answer", "perception", "reasoning", "question_audio", "question_voice", "aetiology"):
        value = getattr(question, field)
        if value:
            row[field] = list(value) if isinstance(value, tuple) else value
    if question.verifiers:
        row["verifiers"] = [dict(verifier) for verifier in question.verifiers]
    for field in ("intelligibility", "sex", "duration_bin"):
        if getattr(question, field):
            row[field] = getattr(question, field)
    if not math.isnan(question.duration_s):
        row["duration_s"] = question.duration_s
    if any(question.source_urls):
        row["source_urls"] = list(question.source_urls)
    if question.audio_durations_s:
        row["audio_durations_s"] = [None if math.isnan(s) else s for s in question.audio_durations_s]
    if question.open_ended:
        row["open_ended"] = True
    return row


def fields_of(names: Sequence[str]) -> dict[str, str]:
    """`extra` from words like `SPELLING=FIELD`. Raises `UsageError` for another form.

    >>> fields_of(["notas=-", "enunciado=question"])
    {'notas': '-', 'enunciado': 'question'}
    """
    extra: dict[str, str] = {}
    for name in names:
        spelling, equals, field = name.partition("=")
        if not equals or not spelling.strip():
            raise UsageError(f"{name!r} is no spelling of a field.", hint="Write SPELLING=FIELD, or SPELLING=-.")
        extra[spelling.strip()] = field.strip()
    check_extra(extra)
    return extra
