"""The three kinds of systems: names, languages, what goes together, what goes into a result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from squtr.errors import UnknownNameError, UsageError
from squtr.harness.protocols import ComponentSpec, Hit, Transcript
from squtr.harness.systems import Cascade, EndToEnd, RunOnly, check_systems

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
    assert Cascade(heard, words).name == "lookup + words"
    assert Cascade(heard, words, front_end=Front()).name == "WPE | lookup + words"
    assert Cascade(heard, words, front_end=Front(), n_best=5).name == "WPE | lookup + words (5-best)"
    assert Cascade(heard, words, front_end=Front(), display_name="robust").name == "robust"
    assert Cascade(Ready(), Run()).name == "mine + my run"
    assert EndToEnd(Encoder()).name == "CLAP"
    assert EndToEnd(Encoder(), front_end=Front()).name == "WPE | CLAP"
    assert RunOnly(Run()).name == "my run"
    assert RunOnly(Run(), "other").name == "other"


def test_kinds_and_their_parts() -> None:
    heard, words, ready, run = Hearing(1), WordRetriever(), Ready(), Run()
    one, two = Cascade(heard, words), Cascade(ready, run)
    assert (one.kind, EndToEnd(Encoder()).kind, RunOnly(run).kind) == ("cascade", "end-to-end", "run")
    assert (one.listener, one.searcher, one.precomputed_transcripts, one.precomputed_run) == (heard, words, None, None)
    assert (two.listener, two.searcher, two.precomputed_transcripts, two.precomputed_run) == (None, None, ready, run)


def test_languages() -> None:
    assert Cascade(LookupTranscriber({}, languages="en zh"), WordRetriever(languages="en")).supports("en")
    assert not Cascade(LookupTranscriber({}, languages="en zh"), WordRetriever(languages="en")).supports("zh")
    assert EndToEnd(Encoder()).supports("en")
    assert not EndToEnd(Encoder()).supports("zh")
    assert RunOnly(Run()).supports("sw")


def test_positions_of_the_first_four_arguments() -> None:
    system = Cascade(Hearing(1), WordRetriever(), "none", "raw")
    assert (system.script, system.normalizer) == ("none", "raw")
    with pytest.raises(TypeError):
        Cascade(Hearing(1), WordRetriever(), "none", "raw", Front())  # type: ignore[misc]


def test_folding() -> None:
    system = Cascade(Hearing(1), WordRetriever())
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
        Cascade(Hearing(1), WordRetriever(), **options)


def test_n_best() -> None:
    assert Cascade(Hearing(5), WordRetriever(), n_best=5, n_best_fusion="score").n_best == 5
    assert Cascade(Ready(), WordRetriever(), n_best=3).n_best == 3
    with pytest.raises(UsageError, match=r"n_best is 6, but lookup .* gives 5 .*n_best: 6"):
        Cascade(Hearing(5), WordRetriever(), n_best=6)
    with pytest.raises(UsageError, match="gives 1 transcript"):
        Cascade(LookupTranscriber({}), WordRetriever(), n_best=2)
    with pytest.raises(UsageError, match="n_best is 0"):
        Cascade(Hearing(5), WordRetriever(), n_best=0)
    with pytest.raises(UsageError, match="one ranking per query"):
        Cascade(Hearing(5), Run(), n_best=2)


def test_a_front_end_needs_sound() -> None:
    with pytest.raises(UsageError, match="nothing to work on before ready transcripts"):
        Cascade(Ready(), WordRetriever(), front_end=Front())
    assert Cascade(Hearing(1), Run(), front_end=Front()).name == "WPE | lookup + my run"


@pytest.mark.parametrize("name", [" a", "a\nb", "..", "+", "é" * 101, "a\x00"])
def test_names_that_no_table_or_folder_can_have(name: str) -> None:
    for make in (
        lambda: Cascade(Hearing(1), WordRetriever(), display_name=name),
        lambda: EndToEnd(Encoder(), display_name=name),
        lambda: RunOnly(Run(), name),
    ):
        with pytest.raises(UsageError, match="cannot be shown in a table"):
            make()


def test_everything_goes_into_the_result() -> None:
    systems = [
        Cascade(Hearing(5), WordRetriever(), "none", "raw", front_end=Front(), n_best=5, display_name="x"),
        EndToEnd(Encoder(), front_end=Front()),
        RunOnly(Run()),
    ]
    for system in systems:
        told = system.as_dict()
        assert json.loads(json.dumps(told)) == told
        own = {name for name in system.__dataclass_fields__ if name not in ("origins", "_")}
        assert own | {"kind", "name"} == set(told)
        assert (told["kind"], told["name"]) == (system.kind, system.name)
    first = systems[0].as_dict()
    assert first["transcriber"]["settings"] == {"n_best": 5}
    assert (first["script"], first["normalizer"], first["n_best"], first["display_name"]) == ("none", "raw", 5, "x")
    assert first["front_end"]["name"] == "WPE"
    assert Cascade(Hearing(1), WordRetriever()).as_dict()["front_end"] is None


def test_systems_that_would_share_a_row_or_a_folder() -> None:
    one, two = Cascade(Hearing(1), WordRetriever()), RunOnly(Run())
    assert check_systems([one, two]) == [one, two]
    with pytest.raises(UsageError, match="no system is given"):
        check_systems([])
    with pytest.raises(UsageError, match="two systems are called 'lookup \\+ words'"):
        check_systems([one, replace(one)])
    with pytest.raises(UsageError, match="called 'a/b' and 'a:b', which is one folder"):
        check_systems([RunOnly(Run(), "a/b"), RunOnly(Run(), "a:b")])
