"""Build a set of questions about speech in the form of ESCUCHA: check it, report its balance, write it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common import bars, counting, note, say, say_json

if TYPE_CHECKING:
    from ...loaders.questions.audio_folder import AudioFolder
    from ...loaders.questions.question import Question

EXAMPLE = """examples:
  squtr build escucha --questions questions.jsonl --audio audio --license CC-BY-4.0 --out my-set
  squtr build escucha --questions questions.jsonl --audio audio --check
  squtr build escucha --questions questions.tsv --audio audio --field notas=- --speak 100 --out my-set

A table is .jsonl, .json, .tsv or .csv, with one row per question:
  {"id": "q1", "audios": ["clip-7"], "question": "¿Qué pide?", "options": ["Un té", "Un café"], "answer": "Un café",
   "perception": ["lexical"], "reasoning": ["factual"]}
  {"id": "q2", "audios": ["clip-7"], "question": "Resúmelo en una frase.", "perception": ["lexical"],
   "reasoning": ["abstraction"], "verifiers": [{"id": "sentences", "count": 1, "relation": "exactly"}]}
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--questions", type=Path, required=True, metavar="FILE", help="the table of questions")
    parser.add_argument("--audio", type=Path, required=True, metavar="DIR", help="the folder of sound, by id")
    parser.add_argument("--name", default="", metavar="NAME", help="the set's name (that of the table)")
    parser.add_argument(
        "--license", default="unknown", metavar="TEXT", help="license of text and sound, SPDX identifiers (unknown)"
    )
    parser.add_argument(
        "--field", action="append", default=[], metavar="SPELLING=FIELD", help="what a column means; - leaves it out"
    )
    parser.add_argument("--allow-missing", action="store_true", help="keep items whose sound is not there")
    parser.add_argument(
        "--speak", type=int, default=0, metavar="N", help="questions to speak, drawn by rare labels (0)"
    )
    parser.add_argument("--synthesizer", default="espeak", metavar="NAME", help="what speaks them (espeak)")
    parser.add_argument("--voices", nargs="+", metavar="VOICE", help="voices to draw from (all for Spanish)")
    parser.add_argument("--voice-files", type=Path, metavar="DIR", help="Kokoro: a folder of voices (*.bin)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the seed of every draw (0)")
    parser.add_argument("--check", action="store_true", help="check and report only, write nothing")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the folder to write ($SQUTR_HOME/escucha)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Check; where nothing is wrong, speak and write."""
    from ...errors import EXIT_FAILED, UsageError
    from ...loaders.questions.audio_folder import AudioFolder
    from ...loaders.questions.balance import balance_of
    from ...loaders.questions.fields import fields_of
    from ...loaders.questions.validate import validate

    if arguments.speak < 0:
        raise UsageError(f"--speak is {arguments.speak}.", hint="Give how many questions to speak, or 0.")
    sounds = AudioFolder(arguments.audio.expanduser())
    with bars() as show:
        checked = validate(
            arguments.questions.expanduser(),
            sounds,
            extra=fields_of(arguments.field),
            check_verifiers=check_verifiers,
            allow_missing=arguments.allow_missing,
            progress=lambda done, total: show("checking sound", done, total),
        )
    for problem in checked.problems:
        note(f"squtr: {problem.sentence}")
    if arguments.check or checked.problems:
        balance = balance_of(checked.questions)
        if arguments.json:
            problems = [{"item": p.item, "message": p.message, "hint": p.hint} for p in checked.problems]
            say_json({"items": len(checked.questions), "problems": problems, "balance": balance})
        else:
            _say_balance(balance)
            say(f"{len(checked.questions):,} questions are right, {len(checked.problems):,} problems.")
        return EXIT_FAILED if checked.problems else 0
    return _build(arguments, list(checked.questions), sounds)


def check_verifiers(question: Question) -> None:
    """Raise `UnknownNameError` or `DataError` naming the item for a verifier or an argument that there is not."""
    from ...errors import DataError, SqutrError
    from ..tasks.understanding.answers.verifiers.registry import load_verifier

    for verifier in question.verifiers:
        arguments = {key: value for key, value in verifier.items() if key != "id"}
        try:
            load_verifier(str(verifier["id"]), arguments)
        except SqutrError as error:
            raise DataError(f"item {question.id!r}: {error.message}", hint=error.hint) from error


def _build(arguments: argparse.Namespace, questions: list[Question], sounds: AudioFolder) -> int:
    from ...loaders.home import escucha_folder
    from ...loaders.questions.build import QuestionRecipe, build_questions
    from ...loaders.questions.statuses import read_statuses

    out: Path = (arguments.out or escucha_folder()).expanduser()
    spoken: dict[str, Any] = {}
    paths = dict(sounds.files)
    if arguments.speak:
        questions, new, spoken = _speak(arguments, questions, out)
        paths |= new
    wanted = {audio for question in questions for audio in question.all_audios}
    table: Path = arguments.questions
    recipe = QuestionRecipe(
        name=arguments.name or table.stem,
        license=arguments.license,
        questions=questions,
        sounds={id_: path for id_, path in paths.items() if id_ in wanted},
        statuses={id_: status.status for id_, status in read_statuses(sounds.folder.parent).items()},
        spoken=spoken,
    )
    with bars() as show:
        manifest = build_questions(recipe, out, progress=counting(show, "writing questions", len(questions)))
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
    say(f"Listen: squtr review escucha {out}")
    return 0


def _speak(
    arguments: argparse.Namespace, questions: list[Question], out: Path
) -> tuple[list[Question], dict[str, Path], dict[str, Any]]:
    """The questions with some spoken, the new files by id, and how they were spoken."""
    from dataclasses import asdict

    from ...loaders.questions.audio_folder import AudioFolder
    from ...loaders.questions.spoken import choose_spoken, speak_questions
    from ...loaders.synthesis import load_synthesizer

    options = {"voices": arguments.voice_files} if arguments.voice_files else {}
    synthesizer = load_synthesizer(arguments.synthesizer, **options)
    chosen = choose_spoken(questions, arguments.speak, arguments.seed)
    how = {
        "synthesizer": {**asdict(synthesizer.spec), "settings": dict(synthesizer.spec.settings)},
        "voices": sorted(arguments.voices or synthesizer.voices("es")),
        "count": arguments.speak,
        "seed": arguments.seed,
    }
    # Beside the set: what was spoken is kept if the run is stopped, and never spoken anew for another text.
    folder = out.with_name(f"{out.name}.spoken") / _digest([how, [[q.id, q.question] for q in questions]])
    with bars() as show:
        questions = speak_questions(
            questions,
            chosen,
            synthesizer,
            folder,
            voices=arguments.voices,
            seed=arguments.seed,
            progress=counting(show, "speaking questions", len(chosen)),
        )
    return questions, dict(AudioFolder(folder).files) if chosen else {}, how


def _digest(value: Any) -> str:
    import hashlib
    import json

    return hashlib.sha256(json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8")).hexdigest()[:16]


def _say_balance(balance: dict[str, Any]) -> None:
    shown = ", ".join(f"{name} {count:,}" for name, count in balance["configs"].items())
    say(f"Questions: {shown}; {balance['seconds'] / 60:.1f} minutes of sound.")
    for group in ("perception", "reasoning", "aetiology", "verifiers"):
        if balance[group]:
            say(f"{group.capitalize()}: {', '.join(f'{name} {count:,}' for name, count in balance[group].items())}.")
    for size, row in balance["positions"].items():
        say(f"Right of {size} options: {', '.join(f'{letter} {count:,}' for letter, count in row.items())}.")
    for name, score in balance["rules"].items():
        rule = name.replace("_", " ")
        say(f"Rule without sound: {rule:<16} {score['accuracy']:6.1%} (chance {score['chance']:.1%})")
    for sentence in balance["warnings"]:
        note(f"squtr: {sentence}")
