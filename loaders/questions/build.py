"""Building a set of one's own into a folder that `datasets.load_dataset` and `QuestionData` read.

    README.md  manifest.json
    questions/<kind>/<one|two>/<written|spoken>/<normative|non_normative>/test-*.parquet

Configs are patterns of these folders. A build that was stopped continues and ends with the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ... import __version__
from ...errors import RecipeMismatchError, SqutrWarning
from ..finished import Made
from ..manifest import MANIFEST_NAME, Manifest, Shard, all_libraries, file_sha256
from ..output_folder import check_rebuilt, damage, writing_folder
from ..shards import ShardPlan, replace_file, shard_name, write_shards
from .balance import balance_of
from .card import question_card
from .fields import row_of
from .manifest import QUESTIONS, QuestionManifest
from .question import Question
from .rows import AUDIO, Row, full_row, question_features, row_groups
from .statuses import Status, coverage_of

SHARD_BYTES = 400 * 2**20
"""The most audio of a shard, but for one row that is larger by itself."""

MENDED = ("questions_sha256", "audio_sha256", "missing")
"""What differs in the recipe when questions and audio were mended."""


def _check_fit(out: Path, held: Manifest, begun: Manifest) -> None:
    one, two = held.recipe, begun.recipe
    differing = sorted(key for key in one.keys() | two.keys() if one.get(key) != two.get(key))
    if held.complete or not set(differing) <= set(MENDED):
        shown = ", ".join(f"{key} {one.get(key)!r} there, {two.get(key)!r} here" for key in differing[:3])
        raise RecipeMismatchError(
            f"{out} holds another recipe ({shown}).", hint="Choose another folder with --out, or remove it."
        )


Progress = Callable[[int], None]
"""Called with the number of questions that were written since the last call."""


@dataclass(frozen=True, slots=True)
class QuestionRecipe:
    """What decides a built set. An id without a path in `clips` has its reason in `statuses`.

    `language` is that of text and audio; `spoken` says how questions were spoken, {} if they were not, or came spoken.
    """

    name: str
    license: str
    language: str
    questions: Sequence[Question]
    clips: Mapping[str, Path]
    statuses: Mapping[str, Status]
    spoken: Mapping[str, Any]
    benchmark: str = ""

    def clip_digests(self) -> dict[str, str]:
        """The sha256 of each audio file, by id."""
        return {id_: file_sha256(path) for id_, path in sorted(self.clips.items())}

    def as_dict(self, clip_digests: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The recipe as JSON object; the audio is read unless its digests are given."""
        digest = hashlib.sha256()
        for question in self.questions:
            digest.update(json.dumps(row_of(question), ensure_ascii=False, sort_keys=True).encode("utf-8") + b"\n")
        audio = hashlib.sha256()
        for id_, sha256 in sorted((self.clip_digests() if clip_digests is None else clip_digests).items()):
            audio.update(f"{len(id_)}:{id_}={sha256}\n".encode())
        return {
            "name": self.name,
            "license": self.license,
            "language": self.language,
            "benchmark": self.benchmark,
            "questions_sha256": digest.hexdigest(),
            "audio_sha256": audio.hexdigest(),
            "missing": {id_: status for id_, status in sorted(self.statuses.items()) if status != "ok"},
            "spoken": dict(self.spoken),
        }


def part_of(question: Question) -> str:
    """The folder of a question below `questions`.

    >>> part_of(Question("q", "mcqa", ("a",), "¿Qué?", ("Sí", "No"), "No"))
    'mcqa/one/written/normative'
    """
    return "/".join(
        (
            question.kind,
            "two" if question.comparative else "one",
            "spoken" if question.spoken else "written",
            "non_normative" if question.non_normative else "normative",
        )
    )


def build_set(recipe: QuestionRecipe, out: Path, *, progress: Progress | None = None) -> QuestionManifest:
    """Write the set to the folder `out` and return its manifest.

    Long audio is copied as it is, one shard's worth (400 MB) at a time at most. Raises `RecipeMismatchError` if the
    folder holds anything else, `StorageError` if the disk refuses.
    """
    report = progress or (lambda _: None)
    digests = recipe.clip_digests()
    described = recipe.as_dict(digests)
    fingerprint = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]
    begun = _manifest(recipe, described, fingerprint)
    with writing_folder(out, begun, fits=lambda held: _check_fit(out, held, begun)) as (held, finished):
        shards: list[Shard] = []
        for plan, numbered in _pieces(recipe):
            made = _made(recipe, numbered, digests)
            if shard := finished.kept(plan.path, made):
                shards.append(shard)
            else:
                tables = ([table] for table in row_groups(_rows(recipe, numbered), plan.schema))
                shards += write_shards(out, [plan], tables, finishing=partial(finished.add, made=made))
            report(plan.rows)
        if finished.damaged:
            warnings.warn(damage(finished), SqutrWarning, stacklevel=2)
        versions = all_libraries(finished.libraries(shard.path) for shard in shards)
        manifest = begun.model_copy(update={"complete": True, "shards": shards, "libraries": versions})
        check_rebuilt(out, held, manifest)
        finished.remove_stale(shard.path for shard in shards)
        coverage = coverage_of(recipe.questions, {**recipe.statuses, **dict.fromkeys(recipe.clips, "ok")})
        replace_file(out / "README.md", question_card(manifest, coverage).encode("utf-8"))
        replace_file(out / MANIFEST_NAME, manifest.to_json())
        finished.close()
    return manifest


def _made(recipe: QuestionRecipe, numbered: Sequence[tuple[int, Question]], digests: Mapping[str, str]) -> Made:
    digest = hashlib.sha256()
    for position, question in numbered:
        audio = {id_: digests.get(id_, recipe.statuses.get(id_, "")) for id_ in question.all_audios}
        row = [position, row_of(question), audio]
        digest.update(json.dumps(row, ensure_ascii=False, sort_keys=True).encode("utf-8") + b"\n")
    return Made(digest.hexdigest()[:16], {})


def _pieces(recipe: QuestionRecipe) -> Iterator[tuple[ShardPlan, list[tuple[int, Question]]]]:
    schema = question_features().arrow_schema
    parts: dict[str, list[tuple[int, Question]]] = {}
    for position, question in enumerate(recipe.questions):
        parts.setdefault(part_of(question), []).append((position, question))
    for part, numbered in sorted(parts.items()):
        pieces: list[list[tuple[int, Question]]] = [[]]
        size = 0
        for position, question in numbered:
            weight = sum(recipe.clips[a].stat().st_size for a in question.all_audios if a in recipe.clips)
            if pieces[-1] and size + weight > SHARD_BYTES:
                pieces.append([])
                size = 0
            pieces[-1].append((position, question))
            size += weight
        for index, piece in enumerate(pieces):
            path = f"{QUESTIONS}/{part}/{shard_name(index, len(pieces))}"
            yield ShardPlan(path, len(piece), schema, QUESTIONS, audio=AUDIO), piece


def _rows(recipe: QuestionRecipe, numbered: Sequence[tuple[int, Question]]) -> Iterator[Row]:
    for position, question in numbered:
        absent = next((audio for audio in question.audios if audio not in recipe.clips), None)
        status: Status = "ok" if absent is None else recipe.statuses.get(absent, "missing")
        yield full_row(question, position, status, recipe.clips.get)


def _manifest(recipe: QuestionRecipe, described: dict[str, Any], fingerprint: str) -> QuestionManifest:
    """The manifest of a build that has begun."""
    return QuestionManifest(
        squtr_version=__version__,
        recipe_fingerprint=fingerprint,
        recipe=described,
        complete=False,
        shards=[],
        license=recipe.license,
        language=recipe.language,
        benchmark=recipe.benchmark,
        items=len(recipe.questions),
        balance=balance_of(recipe.questions),
    )
