"""The three kinds of systems: names, languages, what goes together, what goes into a result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from squtr.errors import UnknownNameError, UsageError
from squtr.harness.protocols import ComponentSpec, Hit, Transcript
from squtr.harness.systems import System, check_systems, with_text_only_baselines

from .fakes import LookupTranscriber, WordRetriever


class Hearing(LookupTranscriber):
    """A transcriber that gives `n_best` transcripts."""

    def __init__(self, n_best: int) -> None:
        super().__init__({})
        self.spec = ComponentSpec("transcriber", "lookup", "lookup", settings={"n_best": n_best})


class Ready:
    spec = ComponentSpec("transcriber", "transcripts", "mine", settings={"n_best": 3})

    def supports(self, language: str) -> bool:
        return True

    def transcripts(self, subset: str, condition: str, query_ids: Sequence[str]) -> list[Transcript]:
        return [Transcript("") for _ in query_ids]


class Run:
    spec = ComponentSpec("retriever", "trec", "my run", revision="sha256:1")

    def supports(self, language: str) -> bool:
        return True

    def hits(self, subset: str, condition: str, query_ids: Sequence[str], *, k: int) -> list[list[Hit]]:
        return [[] for _ in query_ids]


class Front:
    spec = ComponentSpec("front_end", "wpe", "WPE")
    sample_rate = 16_000

    def enhance(self, clips: Sequence[np.ndarray]) -> list[np.ndarray]:
        return list(clips)


class Encoder:
    spec = ComponentSpec("audio_text_encoder", "clap", "CLAP")
    sample_rate = 16_000

    def supports(self, language: str) -> bool:
        return language == "en"

    def encode_audio(self, clips: Sequence[np.ndarray], *, language: str) -> np.ndarray:
        return np.zeros((len(clips), 1), dtype=np.float32)

    def encode(self, texts: Sequence[str], *, role: str) -> np.ndarray:
        return np.zeros((len(texts), 1), dtype=np.float32)


def test_names() -> None:
    heard, words = Hearing(5), WordRetriever()
    assert System(transcriber=heard, retriever=words).name == "lookup + words"
    assert System(transcriber=heard, retriever=words, front_end=Front()).name == "WPE | lookup + words"
    assert (
        System(transcriber=heard, retriever=words, front_end=Front(), n_best=5).name == "WPE | lookup + words (5-best)"
    )
    assert System(transcriber=heard, retriever=words, front_end=Front(), display_name="robust").name == "robust"
    assert System(transcriber=Ready(), retriever=Run()).name == "mine + my run"
    assert System(encoder=Encoder()).name == "CLAP"
    assert System(encoder=Encoder(), front_end=Front()).name == "WPE | CLAP"
    assert System(retriever=Run()).name == "my run"
    assert System(retriever=Run(), display_name="other").name == "other"


def test_kinds_and_their_parts() -> None:
    heard, words, ready, run = Hearing(1), WordRetriever(), Ready(), Run()
    one, two = System(transcriber=heard, retriever=words), System(transcriber=ready, retriever=run)
    assert (one.kind, System(encoder=Encoder()).kind, System(retriever=run).kind) == ("cascade", "end-to-end", "run")
    assert (one.model_transcriber, one.searcher, one.precomputed_transcripts, one.precomputed_run) == (
        heard,
        words,
        None,
        None,
    )
    assert (two.model_transcriber, two.searcher, two.precomputed_transcripts, two.precomputed_run) == (
        None,
        None,
        ready,
        run,
    )


def test_languages() -> None:
    assert System(
        transcriber=LookupTranscriber({}, languages="en zh"), retriever=WordRetriever(languages="en")
    ).supports("en")
    assert not System(
        transcriber=LookupTranscriber({}, languages="en zh"), retriever=WordRetriever(languages="en")
    ).supports("zh")
    assert System(encoder=Encoder()).supports("en")
    assert not System(encoder=Encoder()).supports("zh")
    assert System(retriever=Run()).supports("sw")


def test_folding() -> None:
    system = System(transcriber=Hearing(1), retriever=WordRetriever())
    assert (system.folding("zh"), system.folding("en")) == ("simplified", "none")
    assert replace(system, script="none").folding("zh") == "none"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"script": "simplifid"}, "Did you mean 'simplified'"),
        ({"normalizer": "defalt"}, "Did you mean 'default'"),
        ({"n_best_fusion": "rff"}, "Did you mean 'rrf'"),
    ],
)
def test_wrong_names(options: dict[str, str], message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        System(transcriber=Hearing(1), retriever=WordRetriever(), **options)


def test_n_best() -> None:
    assert System(transcriber=Hearing(5), retriever=WordRetriever(), n_best=5, n_best_fusion="score").n_best == 5
    assert System(transcriber=Ready(), retriever=WordRetriever(), n_best=3).n_best == 3
    with pytest.raises(UsageError, match=r"n_best is 6, but lookup .* gives 5 .*n_best: 6"):
        System(transcriber=Hearing(5), retriever=WordRetriever(), n_best=6)
    with pytest.raises(UsageError, match="gives 1 transcript"):
        System(transcriber=LookupTranscriber({}), retriever=WordRetriever(), n_best=2)
    with pytest.raises(UsageError, match="n_best is 0"):
        System(transcriber=Hearing(5), retriever=WordRetriever(), n_best=0)
    with pytest.raises(UsageError, match="one ranking per query"):
        System(transcriber=Hearing(5), retriever=Run(), n_best=2)


def test_a_front_end_needs_sound() -> None:
    with pytest.raises(UsageError, match="nothing to work on before precomputed output"):
        System(transcriber=Ready(), retriever=WordRetriever(), front_end=Front())
    assert System(transcriber=Hearing(1), retriever=Run(), front_end=Front()).name == "WPE | lookup + my run"


@pytest.mark.parametrize("name", [" a", "a\nb", "..", "+", "é" * 101, "a\x00"])
def test_names_that_no_table_or_folder_can_have(name: str) -> None:
    for make in (
        lambda: System(transcriber=Hearing(1), retriever=WordRetriever(), display_name=name),
        lambda: System(encoder=Encoder(), display_name=name),
        lambda: System(retriever=Run(), display_name=name),
    ):
        with pytest.raises(UsageError, match="cannot be shown in a table"):
            make()


def test_everything_goes_into_the_result() -> None:
    systems = [
        System(
            transcriber=Hearing(5),
            retriever=WordRetriever(),
            script="none",
            normalizer="raw",
            front_end=Front(),
            n_best=5,
            display_name="x",
        ),
        System(encoder=Encoder(), front_end=Front()),
        System(retriever=Run()),
    ]
    for system in systems:
        told = system.as_dict()
        assert json.loads(json.dumps(told)) == told
        own = {name for name in system.__dataclass_fields__ if name != "origins" and getattr(system, name) is not None}
        assert own | {"kind", "name"} == set(told)
        assert (told["kind"], told["name"]) == (system.kind, system.name)
    first = systems[0].as_dict()
    assert first["transcriber"]["settings"] == {"n_best": 5}
    assert (first["script"], first["normalizer"], first["n_best"], first["display_name"]) == ("none", "raw", 5, "x")
    assert first["front_end"]["name"] == "WPE"
    assert System(transcriber=Hearing(1), retriever=WordRetriever()).as_dict().get("front_end") is None


def test_systems_that_would_share_a_row_or_a_folder() -> None:
    one, two = System(transcriber=Hearing(1), retriever=WordRetriever()), System(retriever=Run())
    assert check_systems([one, two]) == [one, two]
    with pytest.raises(UsageError, match="no system is given"):
        check_systems([])
    with pytest.raises(UsageError, match="two systems are called 'lookup \\+ words'"):
        check_systems([one, replace(one)])
    with pytest.raises(UsageError, match="called 'a/b' and 'a:b', which is one folder"):
        check_systems([System(retriever=Run(), display_name="a/b"), System(retriever=Run(), display_name="a:b")])


class Answers:
    """An LLM, or with `uses_audio` a chat model."""

    def __init__(self, name: str = "llm", *, uses_audio: bool = False) -> None:
        self.uses_audio = uses_audio
        self.spec = ComponentSpec("answerer", "llm", name)

    def supports(self, language: str) -> bool:
        return language == "es"

    def answer(self, requests: Sequence[object]) -> list[object]:
        return []


class Replies:
    spec = ComponentSpec("answerer", "replies", "people")

    def supports(self, language: str) -> bool:
        return True

    def reply_of(self, item: str) -> str:
        return ""


def test_components_per_language() -> None:
    english, chinese, words = LookupTranscriber({}, languages="en"), Hearing(1), WordRetriever(languages="en zh")
    system = System(transcriber={"en": english, "zh": chinese}, retriever=words, display_name="two")
    assert (system.kind, system.name, system.languages) == ("cascade", "two", ("en", "zh"))
    assert [one.transcriber for one in system.distinct] == [english, chinese]
    assert {one.name for one in system.distinct} == {"two"}
    assert (system.supports("en"), system.supports("zh"), system.supports("es")) == (True, True, False)
    assert system.components("zh")["transcriber"] == chinese.spec.as_dict()
    assert json.loads(json.dumps(system.as_dict()))["transcriber"]["en"] == english.spec.as_dict()
    assert system.fingerprint != replace(system, transcriber={"en": chinese, "zh": english}).fingerprint
    with pytest.raises(UsageError, match=r"two has no transcriber for 'es'. It has en, zh"):
        system.for_language("es")
    for read in ("model_transcriber", "precomputed_transcripts"):
        with pytest.raises(UsageError, match=r"two has one transcriber per language. Take the system of one language"):
            getattr(system, read)
    with pytest.raises(UsageError, match="no language in common"):
        System(transcriber={"en": english}, retriever={"zh": words})
    with pytest.raises(UsageError, match="n_best is 2, but lookup"):
        System(transcriber={"en": Hearing(2), "zh": Hearing(1)}, retriever=words, n_best=2)
    with pytest.raises(UsageError, match="nothing to work on"):
        System(transcriber={"en": english, "zh": Ready()}, retriever=words, front_end=Front())


@pytest.mark.parametrize(
    ("parts", "kind", "name"),
    [
        ({"transcriber": Hearing(1), "front_end": Front()}, "transcriber", "WPE | lookup"),
        ({"answerer": Answers("chat", uses_audio=True)}, "answerer", "chat"),
        ({"answerer": Answers(), "transcriber": Hearing(1)}, "answerer", "lookup + llm"),
        ({"answerer": Answers(), "text_only": True}, "answerer", "text-only + llm"),
        ({"answerer": Replies()}, "answerer", "people"),
    ],
)
def test_kinds_without_a_retriever(parts: dict[str, object], kind: str, name: str) -> None:
    system = System(**parts)  # type: ignore[arg-type]
    assert (system.kind, system.name) == (kind, name)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "a system of nothing"),
        ({"retriever": WordRetriever()}, "a system of retriever"),
        ({"answerer": Answers(), "retriever": WordRetriever()}, "a system of answerer and retriever"),
        ({"answerer": Answers(), "front_end": Front()}, "before a transcriber or an encoder"),
        ({"answerer": Answers(), "transcriber": Ready()}, "precomputed transcripts are by the id of a query"),
        ({"answerer": Answers(), "transcriber": Hearing(1), "text_only": True}, "is an answerer alone"),
        ({"answerer": Replies(), "text_only": True}, "precomputed replies"),
        ({"answerer": Replies(), "transcriber": Hearing(1)}, "precomputed replies"),
        ({"answerer": Answers(), "templates": {"note": "x"}}, "unknown template 'note'"),
        ({"transcriber": Hearing(1), "templates": {"transcript": "{text}"}}, "templates are for the prompt"),
    ],
)
def test_parts_that_do_not_go_together(parts: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        System(**parts)  # type: ignore[arg-type]


def test_text_only_baselines_are_shared() -> None:
    llm, chat = Answers(), Answers("chat", uses_audio=True)
    cascades = [
        System(answerer=llm, transcriber=Hearing(1)),
        System(answerer=llm, transcriber=Hearing(2), templates={"transcript": "{text}"}, display_name="other"),
    ]
    replies, silent = System(answerer=Replies()), System(answerer=Answers("text"))
    found = with_text_only_baselines([*cascades, System(answerer=chat), replies, silent])
    assert [system.name for system in found[5:]] == ["text-only + llm", "text-only + chat"]
    assert all(system.text_only and system.transcriber is None for system in found[5:])
    assert with_text_only_baselines(found) == found
    with pytest.raises(UsageError, match="people was made elsewhere"):
        replies.text_only_baseline()
