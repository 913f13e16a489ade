"""Backends by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from squtr.errors import ModelError, UnknownNameError, UsageError
from squtr.harness.components import RETRIEVERS, TRANSCRIBERS, USUAL_TRANSCRIBERS, load_retriever, load_transcriber
from squtr.harness.components.transcribers.faster_whisper import HUB_MODELS, FasterWhisperTranscriber
from squtr.harness.components.transcribers.transformers import TransformersTranscriber
from squtr.harness.demo.packages import PACKAGED_WEIGHTS


def test_a_name_chooses_the_engine() -> None:
    assert isinstance(load_transcriber("faster-whisper:whisper-base"), FasterWhisperTranscriber)
    assert isinstance(load_transcriber("whisper-base", threads=2), FasterWhisperTranscriber)
    assert isinstance(load_transcriber("transformers:openai/whisper-small", batch_size=2), TransformersTranscriber)


def test_every_row_of_the_tables_can_be_imported() -> None:
    for row in TRANSCRIBERS.values():
        assert load_transcriber(f"{row.name}:whisper-base") is not None
    more = {"hybrid": {"parts": ["bm25", "dense:all-minilm-l6-v2"]}, "rerank": {"first": "bm25"}}
    more["route"] = {"below": "dense:all-minilm-l6-v2", "otherwise": "bm25", "threshold": 0.6}
    for row in RETRIEVERS.values():
        name = f"{row.name}:all-minilm-l6-v2" if row.takes_model else row.name
        if row.name == "dense-mteb":
            # mteb looks for the model in its registry, and on the Hub.
            with pytest.raises(ModelError, match="mteb does not find"):
                load_retriever(name)
        else:
            assert load_retriever(name, **more.get(row.name, {})) is not None


def test_every_bare_name_has_weights() -> None:
    packaged = {name for name in PACKAGED_WEIGHTS if name.startswith("whisper-")}
    assert set(USUAL_TRANSCRIBERS) == packaged | set(HUB_MODELS)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("whisper-bass", "Did you mean 'whisper-base'.*faster-whisper:<model>"),
        ("faster-wisper:whisper-base", "unknown transcriber.*Known: .*faster-whisper:<model>"),
        ("", "unknown transcriber ''"),
    ],
)
def test_an_unknown_transcriber_lists_the_choices(name: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        load_transcriber(name)


def test_a_missing_model_or_one_too_many_is_refused() -> None:
    with pytest.raises(UsageError, match="Write faster-whisper:<model>"):
        load_transcriber("faster-whisper")
    with pytest.raises(UsageError, match="takes no model"):
        load_retriever("bm25:base")
    with pytest.raises(UnknownNameError, match=r"bm25, .*dense:<model>"):
        load_retriever("bm26")


def test_an_unknown_option_lists_the_options() -> None:
    with pytest.raises(UsageError, match=r"'beams'.*beam_size"):
        load_transcriber("whisper-base", beams=5)


def test_the_tables_load_no_engine() -> None:
    code = (
        "import sys; from squtr.harness.components import load_transcriber; load_transcriber('whisper-base');"
        "load_transcriber('transformers:whisper-base');"
        "print([m for m in ('torch','transformers','ctranslate2','faster_whisper','datasets') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
