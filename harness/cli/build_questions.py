"""The part of `squtr build` that checks and builds a set of questions."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common import Bars, counting, note, say, say_json

if TYPE_CHECKING:
    from ...loaders.questions.question import Question


def build_questions(
    arguments: argparse.Namespace,
    source: str,
    *,
    audio: Path | None = None,
    name: str = "",
    license: str = "unknown",
    language: str = "es",
    field: list[str] | None = None,
    allow_missing: bool = False,
    check: bool = False,
    seed: int = 0,
    speak: int = 0,
    **speaking: Any,
) -> int:
    """Check; where nothing is wrong, speak and write. `speaking` are options of `_speak`."""
    from ...errors import EXIT_FAILED, UsageError
    from ...loaders.home import data_folder
    from ...loaders.questions.audio_folder import AudioFolder, find_audio_folder
    from ...loaders.questions.balance import balance_of
    from ...loaders.questions.build import QuestionRecipe, build_set
    from ...loaders.questions.data import table_of
    from ...loaders.questions.fields import fields_of
    from ...loaders.questions.statuses import read_statuses
    from ...loaders.questions.validate import validate

    if speak < 0:
        raise UsageError(f"--speak is {speak}.", hint="Give how many questions to speak, or 0.")
    table, folder = table_of(source)
    files = AudioFolder(audio.expanduser() if audio else find_audio_folder(folder))
    with Bars() as show:
        checked = validate(
            table,
            files,
            extra=fields_of(field or []),
            check_verifiers=check_verifiers,
            allow_missing=allow_missing,
            progress=lambda done, total: show("checking audio", done, total),
        )
    for problem in checked.problems:
        note(f"squtr: {problem.sentence}")
    if check or checked.problems:
        balance = balance_of(checked.questions)
        if arguments.json:
            problems = [{"item": p.item, "message": p.message, "hint": p.hint} for p in checked.problems]
            say_json({"items": len(checked.questions), "problems": problems, "balance": balance})
        else:
            _say_balance(balance)
            say(f"{len(checked.questions):,} questions are right, {len(checked.problems):,} problems.")
        return EXIT_FAILED if checked.problems else 0
    out: Path = (arguments.out or data_folder(arguments.benchmark or "questions")).expanduser()
    questions, paths, spoken = list(checked.questions), dict(files.files), dict[str, Any]()
    if speak:
        questions, new, spoken = _speak(questions, out, count=speak, language=language, seed=seed, **speaking)
        paths |= new
    wanted = {clip for question in questions for clip in question.all_audios}
    recipe = QuestionRecipe(
        name=name or table.stem,
        license=license,
        language=language,
        benchmark=arguments.benchmark,
        questions=questions,
        clips={id_: path for id_, path in paths.items() if id_ in wanted},
        statuses={id_: status.status for id_, status in read_statuses(files.folder.parent).items()},
        spoken=spoken,
    )
    with Bars() as show:
        manifest = build_set(recipe, out, progress=counting(show, "writing questions", len(questions)))
    size = sum(shard.bytes for shard in manifest.shards)
    if arguments.json:
        say_json(
            {
                "folder": str(out),
                "recipe_fingerprint": manifest.recipe_fingerprint,
                "items": manifest.items,
                "shards": len(manifest.shards),
                "bytes": size,
                "balance": manifest.balance,
            }
        )
        return 0
    _say_balance(manifest.balance)
    say(f"Built {manifest.items:,} questions ({size / 1e6:.1f} MB, {len(manifest.shards)} files) into {out}.")
    say(f'Load: datasets.load_dataset("{out}", "all", split="test")')
    say(f"Review: squtr review {out}")
    return 0


def check_verifiers(question: Question) -> None:
    from ...errors import DataError, SqutrError
    from ..tasks.understanding.answers.verifiers.registry import load_verifier

    for verifier in question.verifiers:
        arguments = {key: value for key, value in verifier.items() if key != "id"}
        try:
            load_verifier(str(verifier["id"]), arguments)
        except SqutrError as error:
            raise DataError(f"item {question.id!r}: {error.message}", hint=error.hint) from error


def _speak(
    questions: list[Question],
    out: Path,
    *,
    count: int,
    language: str,
    seed: int,
    synthesizer: str = "espeak",
    voices: list[str] | None = None,
    voice_files: Path | None = None,
) -> tuple[list[Question], dict[str, Path], dict[str, Any]]:
    """The questions, `count` of them spoken; the files of those; and how they were spoken."""
    from dataclasses import asdict

    from ...loaders.questions.audio_folder import AudioFolder
    from ...loaders.questions.spoken import choose_spoken, speak_questions
    from ...loaders.synthesis import load_synthesizer

    engine = load_synthesizer(synthesizer, **({"voices": voice_files} if voice_files else {}))
    chosen = choose_spoken(questions, count, seed)
    how = {
        "synthesizer": {**asdict(engine.spec), "settings": dict(engine.spec.settings)},
        "voices": sorted(voices or engine.voices(language)),
        "count": count,
        "seed": seed,
    }
    # Beside the set: what was spoken is kept if the run is stopped, and never spoken anew for another text.
    folder = out.with_name(f"{out.name}.spoken") / _digest([how, [[q.id, q.question] for q in questions]])
    with Bars() as show:
        questions = speak_questions(
            questions,
            chosen,
            engine,
            folder,
            language=language,
            voices=voices,
            seed=seed,
            progress=counting(show, "speaking questions", len(chosen)),
        )
    return questions, dict(AudioFolder(folder).files) if chosen else {}, how


def _digest(value: Any) -> str:
    import hashlib
    import json

    return hashlib.sha256(json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8")).hexdigest()[:16]


def _say_balance(balance: dict[str, Any]) -> None:
    shown = ", ".join(f"{name} {count:,}" for name, count in balance["configs"].items())
    say(f"Questions: {shown}; {balance['seconds'] / 60:.1f} minutes of audio.")
    for group in ("perception", "reasoning", "aetiology", "verifiers"):
        if balance[group]:
            say(f"{group.capitalize()}: {', '.join(f'{name} {count:,}' for name, count in balance[group].items())}.")
    for size, row in balance["positions"].items():
        say(f"Right among {size} options: {', '.join(f'{letter} {count:,}' for letter, count in row.items())}.")
    for name, score in balance["rules"].items():
        rule = name.replace("_", " ")
        say(f"Rule, from the text alone: {rule:<16} {score['accuracy']:6.1%} (chance {score['chance']:.1%})")
    for sentence in balance["warnings"]:
        note(f"squtr: {sentence}")
