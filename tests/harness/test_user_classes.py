"""Components by dotted path, and every loader by name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.errors import ModelError, UnknownNameError, UsageError
from squtr.harness.components import (
    load_audio_text_encoder,
    load_front_end,
    load_retriever,
    load_text_encoder,
    load_transcriber,
)
from squtr.harness.components.encoders.audio_sentence_transformers import MultimodalEncoder
from squtr.harness.components.encoders.chat_template import ChatTemplateEncoder
from squtr.harness.components.encoders.clap import ClapEncoder
from squtr.harness.components.encoders.sentence_transformers import SentenceTransformerEncoder
from squtr.harness.components.retrievers.bm25 import BM25Retriever
from squtr.harness.components.user_classes import check_component, kind_of, load_user_class
from squtr.harness.protocols import ComponentSpec

from .fakes import LookupTranscriber, WordRetriever

HERE = "tests.harness.user_components_for_tests"
CLIP = np.zeros(16_000, np.float32)


def test_a_transcriber_by_dotted_path() -> None:
    for written in (f"class:{HERE}:FixedTranscriber", f"class:{HERE}.FixedTranscriber"):
        transcriber = load_transcriber(written, text="good day")
        assert transcriber.sample_rate == 16_000
        assert [t.text for t in transcriber.transcribe([CLIP, CLIP], language="en")] == ["good day", "good day"]
        assert transcriber.spec.name == "fixed"


def test_a_function_and_a_ready_object_will_do() -> None:
    made: Any = load_transcriber(f"class:{HERE}:make_transcriber")
    assert made.text == "from a function"
    ready: Any = load_transcriber(f"class:{HERE}:READY")
    assert ready.text == "ready"
    with pytest.raises(UsageError, match="is an object and takes no options, but text was given"):
        load_transcriber(f"class:{HERE}:READY", text="x")
    passing: Any = load_transcriber(f"class:{HERE}:Passing")
    assert passing.transcribe([CLIP], language="en")[0].text == "hello"


def test_a_module_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine_here.py").write_text(
        "from mine_helper import WORD\n"
        "from squtr.harness.protocols import ComponentSpec, Transcript\n"
        "class Mine:\n"
        "    spec = ComponentSpec('transcriber', 'class', 'mine')\n"
        "    sample_rate = 8000\n"
        "    def supports(self, language): return True\n"
        "    def transcribe(self, clips, *, language): return [Transcript(WORD) for _ in clips]\n"
    )
    (tmp_path / "mine_helper.py").write_text("WORD = 'local'\n")
    with pytest.raises(UsageError, match="there is no module 'mine_here'"):
        load_transcriber("class:mine_here:Mine")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    try:
        assert load_transcriber("class:mine_here:Mine").transcribe([CLIP], language="en")[0].text == "local"
    finally:
        sys.modules.pop("mine_here", None)
        sys.modules.pop("mine_helper", None)
    assert sys.path == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "import no_such_thing.part\n",
            r"needs the module 'no_such_thing', which is not installed.*Install no_such_thing",
        ),
        ("raise RuntimeError('on purpose')\n", r"cannot be imported \(RuntimeError: on purpose\)"),
        ("def :\n", r"cannot be imported \(SyntaxError"),
        ("class Other: pass\n", r"unknown class of the module 'broken_here' 'Mine'.*Known: Other"),
        ("Mine = 3\n", r"class:broken_here:Mine is no component: it has none of the methods transcribe"),
    ],
)
def test_a_module_that_fails_is_named_with_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, message: str
) -> None:
    (tmp_path / "broken_here.py").write_text(content)
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    try:
        with pytest.raises(UsageError, match=message):
            load_user_class("class:broken_here:Mine")
    finally:
        sys.modules.pop("broken_here", None)
    assert sys.path == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Mute", r"looks like a transcriber, but lacks sample_rate, supports"),
        ("WrongCall", r"cannot be called as transcribe\(…, language=…\)"),
        ("WrongKind", r"is a transcriber, but its spec says kind 'retriever'"),
        ("WrongSpec", r"the spec of .* is a dict"),
        ("BrokenSpec", r"the spec of .* cannot be read \(KeyError: 'weights'\)"),
        ("BothAtOnce", r"could be a transcriber or a front end"),
        ("Raises", r"cannot be made with \{\} \(FileNotFoundError: nowhere\)"),
        ("FixedTranscribed", r"unknown class .* Did you mean 'FixedTranscriber'"),
    ],
)
def test_a_class_that_does_not_fit_says_why(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_user_class(f"{HERE}:{name}")


@pytest.mark.parametrize("dotted", ["", "Transcriber", "a:", ":B", "my-module:A", "a:b c", "../x:Y", "a..b:C"])
def test_a_path_that_is_none_is_refused(dotted: str) -> None:
    with pytest.raises(UsageError, match="is no path to a class"):
        load_user_class(dotted)


def test_wrong_options_list_the_options() -> None:
    with pytest.raises(UsageError, match=r"'volume'.*It takes: text, revision"):
        load_transcriber(f"class:{HERE}:FixedTranscriber", volume=11)


def test_a_class_of_another_kind_is_refused() -> None:
    name = f"class:{HERE}:FixedTranscriber"
    for load in (load_retriever, load_text_encoder, load_audio_text_encoder, load_front_end):
        with pytest.raises(UsageError, match=r"is no .*, but of kind transcriber"):
            load(name)
    assert (
        kind_of(load_retriever("class:squtr.harness.components.retrievers.bm25:BM25Retriever", k1=1.2)) == "retriever"
    )


def test_kinds_by_members() -> None:
    assert kind_of(LookupTranscriber({})) == check_component(LookupTranscriber({}), "lookup") == "transcriber"
    assert kind_of(WordRetriever()) == check_component(WordRetriever(), "words") == "retriever"
    assert kind_of(BM25Retriever()) == "retriever"
    assert kind_of(SentenceTransformerEncoder("someone/model")) == "encoder"
    for audio in (ClapEncoder, ChatTemplateEncoder, MultimodalEncoder):
        assert kind_of(audio("someone/model")) == "audio_text_encoder"

    class Gate:
        spec = ComponentSpec("front_end", "class", "gate")
        sample_rate = 16_000

        def enhance(self, clips: list[Any]) -> list[Any]:
            return clips

    assert kind_of(Gate()) == check_component(Gate(), "gate") == "front_end"
    with pytest.raises(UsageError, match="str looks like a text encoder, but lacks spec, supports"):
        check_component("text", "str")
    with pytest.raises(UsageError, match="dict is no component"):
        kind_of({})


def test_asking_for_the_kind_runs_no_property() -> None:
    class Heavy:
        @property
        def spec(self) -> ComponentSpec:
            raise ModelError("weights were looked for")

        sample_rate = spec

        def supports(self, language: str) -> bool:
            return True

        def transcribe(self, clips: list[Any], *, language: str) -> list[Any]:
            return []

    assert kind_of(Heavy()) == "transcriber"
    with pytest.raises(ModelError, match="weights were looked for"):
        check_component(Heavy(), "heavy")


def test_every_loader_lists_its_choices() -> None:
    assert isinstance(load_audio_text_encoder("clap:someone/model", long_clips="mean"), ClapEncoder)
    assert isinstance(load_audio_text_encoder("chat-template:someone/model", pooling="mean"), ChatTemplateEncoder)
    assert isinstance(load_audio_text_encoder("sentence-transformers-audio:someone/model"), MultimodalEncoder)
    assert isinstance(load_text_encoder("sentence-transformers:someone/model"), SentenceTransformerEncoder)
    for load, message in (
        (load_transcriber, r"unknown transcriber 'claps'.*class:<module>:<Class>"),
        (load_audio_text_encoder, r"unknown audio-text encoder 'claps'.*chat-template:<model>"),
        (load_text_encoder, r"unknown text encoder 'claps'.*sentence-transformers:<model>"),
        (load_front_end, r"unknown front end 'claps'.*wpe"),
    ):
        with pytest.raises(UnknownNameError, match=message):
            load("claps")
    with pytest.raises(UsageError, match=r"'long'.*long_clips"):
        load_audio_text_encoder("clap:someone/model", long="mean")
    with pytest.raises(UsageError, match="Write clap:<model>"):
        load_audio_text_encoder("clap")
