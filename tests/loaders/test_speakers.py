"""The table of speakers, and CosyVoice, which clones them: against a module of the official package's shape."""

from __future__ import annotations

import pickle
import random
import sys
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from squtr.errors import (
    AudioError,
    DataError,
    MissingExtraError,
    ModelError,
    SynthesisError,
    UnknownNameError,
    UsageError,
)
from squtr.loaders.records import Query
from squtr.loaders.synthesis import SYNTHESIZERS, load_synthesizer
from squtr.loaders.synthesis.cosyvoice import CosyVoiceSynthesizer
from squtr.loaders.synthesis.speakers import Speaker, SpeakerTable
from squtr.loaders.synthesis.speaking import choose_voice

LINES = """\
{"id": "en-1", "language": "en", "gender": "female", "age_band": "20-29", "accent": "Scottish", "license": "CC0-1.0", \
"clip": "en/1.wav", "transcript": "Good morning."}
{"id": "en-2", "language": "en", "gender": "male", "license": "CC-BY-4.0", "clip": "en/2.wav"}
{"id": "zh-1", "language": "zh", "clip": "zh/1.wav", "transcript": "早上好。"}
"""


def write_clip(path: Path, rate: int = 16_000, seconds: float = 2.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(len(str(path))).normal(scale=0.1, size=int(rate * seconds))
    soundfile.write(path, noise.astype(np.float32), rate)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    folder = tmp_path / "speakers"
    for name in ("en/1.wav", "en/2.wav", "zh/1.wav"):
        write_clip(folder / name)
    (folder / "speakers.jsonl").write_text(LINES, encoding="utf-8")
    return folder


def test_a_table_is_read(table: Path) -> None:
    speakers = SpeakerTable(table)
    assert speakers.languages == ("en", "zh")
    assert speakers.speakers[0] == Speaker(
        "en-1", "en", "female", "20-29", "Scottish", "CC0-1.0", "en/1.wav", "Good morning."
    )
    assert speakers.license == "CC-BY-4.0 AND CC0-1.0 AND unknown"
    assert speakers.clip(speakers.find("zh-1", "zh")) == table / "zh" / "1.wav"
    before = speakers.version
    write_clip(table / "zh" / "1.wav", seconds=1.0)
    assert SpeakerTable(table).version != before


def test_csv_says_the_same(table: Path, tmp_path: Path) -> None:
    path = tmp_path / "speakers.csv"
    path.write_text("id,language,gender,clip\nes-1,es,other,1.wav\n", encoding="utf-8")
    assert SpeakerTable(path).speakers == (Speaker("es-1", "es", "other", clip="1.wav"),)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"language": "en"}', "field 'id' is None"),
        ('{"id": "", "language": "en"}', "id or language is empty"),
        ('{"id": "a", "language": "en", "gender": "F"}', "the gender is 'F'"),
        ('{"id": "a", "language": "en"}\n{"id": "a", "language": "en"}', "'a' occurs twice"),
        ("", "names no speakers"),
    ],
)
def test_broken_tables(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "speakers.jsonl").write_text(line, encoding="utf-8")
    with pytest.raises(DataError, match=said):
        _ = SpeakerTable(tmp_path).speakers


def test_missing_tables_and_clips(table: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no table of speakers"):
        SpeakerTable(tmp_path / "nowhere")
    (table / "speakers.csv").write_text("id,language\na,en\n", encoding="utf-8")
    with pytest.raises(UsageError, match="several tables"):
        SpeakerTable(table)
    speakers = SpeakerTable(table / "speakers.jsonl")
    with pytest.raises(UsageError, match="no speaker of 'es'"):
        speakers.of_language("es")
    with pytest.raises(UnknownNameError, match="Did you mean 'en-1'"):
        speakers.find("en-11", "en")
    with pytest.raises(AudioError, match="outside"):
        speakers.clip(Speaker("x", "en", clip="../x.wav"))
    with pytest.raises(DataError, match="has no clip"):
        speakers.clip(Speaker("x", "en"))


def test_sampling_is_uniform_within_a_language() -> None:
    people = [f"en-{i}" for i in range(5)]
    queries = [Query(f"q{i}", "s", "en", "?") for i in range(2500)]
    drawn = Counter(choose_voice(query, people) for query in queries)
    assert set(drawn) == set(people)
    # 500 each; five standard deviations of a binomial are 100.
    assert all(abs(count - 500) < 100 for count in drawn.values())
    # Keyed: the order of the table does not matter.
    assert all(choose_voice(query, people) == choose_voice(query, people[::-1]) for query in queries[:50])
    assert Counter(choose_voice(query, people, seed=1) for query in queries) != drawn
    with pytest.raises(UsageError, match="no voice"):
        choose_voice(Query("q", "s", "es", "?"), [])


class FakeCosyVoice3:
    """The methods of the official class that are used; each call is remembered, each take draws from the generators."""

    sample_rate = 22_050

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.pieces = 2

    def _takes(self) -> Iterator[dict[str, Any]]:
        import torch

        for _ in range(self.pieces):
            noise = torch.randn(1, 11_025) + float(np.random.normal()) + random.random()
            yield {"tts_speech": 0.05 * noise}

    def inference_zero_shot(self, *arguments: Any, **options: Any) -> Iterator[dict[str, Any]]:
        self.calls.append(("zero_shot", arguments, options))
        return self._takes()

    def inference_cross_lingual(self, *arguments: Any, **options: Any) -> Iterator[dict[str, Any]]:
        self.calls.append(("cross_lingual", arguments, options))
        return self._takes()


@pytest.fixture
def official(monkeypatch: pytest.MonkeyPatch) -> list[FakeCosyVoice3]:
    made: list[FakeCosyVoice3] = []

    def auto_model(**options: Any) -> FakeCosyVoice3:
        made.append(FakeCosyVoice3(**options))
        return made[-1]

    module = types.ModuleType("cosyvoice.cli.cosyvoice")
    module.AutoModel = auto_model  # type: ignore[attr-defined]
    for name in ("cosyvoice", "cosyvoice.cli"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "cosyvoice.cli.cosyvoice", module)
    return made


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "Fun-CosyVoice3-0.5B"
    folder.mkdir()
    for name in ("cosyvoice3.yaml", "llm.pt", "flow.pt", "hift.pt"):
        (folder / name).write_bytes(name.encode())
    return folder


def test_cosyvoice_clones_a_speaker(table: Path, weights: Path, official: list[FakeCosyVoice3]) -> None:
    pytest.importorskip("torch")
    engine = load_synthesizer("cosyvoice", model=weights, speakers=table)
    assert engine.languages == ("en", "zh")
    assert engine.voices("en") == ("en-1", "en-2")
    assert not official  # nothing is loaded to answer that
    samples = engine.synthesize("How are you?", voice="en-1", language="en", seed=3)
    assert samples.dtype == np.float32
    assert samples.shape == (24_000,)  # two pieces of half a second, from 22.05 to 24 kHz
    (fake,) = official
    assert fake.options == {"model_dir": str(weights), "fp16": False}
    assert fake.calls == [
        (
            "zero_shot",
            ("How are you?", "You are a helpful assistant.<|endofprompt|>Good morning.", str(table / "en" / "1.wav")),
            {"stream": False},
        )
    ]
    engine.synthesize("How are you?", voice="en-2", language="en")
    assert fake.calls[-1] == (
        "cross_lingual",
        ("You are a helpful assistant.<|endofprompt|>How are you?", str(table / "en" / "2.wav")),
        {"stream": False},
    )
    assert len(official) == 1


def test_cosyvoice_takes_depend_on_the_seed_alone(table: Path, weights: Path, official: list[FakeCosyVoice3]) -> None:
    torch = pytest.importorskip("torch")
    engine = CosyVoiceSynthesizer(model=weights, speakers=table)
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    expected = (random.random(), np.random.normal(), float(torch.randn(1)))
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    first = engine.synthesize("Hello.", voice="en-1", language="en", seed=7)
    # The generators of the program go on as if nobody had drawn.
    assert (random.random(), np.random.normal(), float(torch.randn(1))) == expected
    again = engine.synthesize("Hello.", voice="en-1", language="en", seed=7)
    other = engine.synthesize("Hello.", voice="en-1", language="en", seed=8)
    assert (first == again).all()
    assert not (first == other).all()


def test_cosyvoice_says_what_decides_its_speech(table: Path, weights: Path) -> None:
    engine = CosyVoiceSynthesizer(model=weights, speakers=table)
    spec = engine.spec
    assert (spec.engine, spec.model) == ("cosyvoice", "Fun-CosyVoice3-0.5B")
    assert len(spec.revision) == 64
    assert spec.license == "Apache-2.0 AND CC-BY-4.0 AND CC0-1.0 AND unknown"
    assert spec.settings["speakers"] == SpeakerTable(table).version
    assert CosyVoiceSynthesizer(model=weights, speakers=table, revision="abc").spec.revision == "abc"
    copy = pickle.loads(pickle.dumps(engine))
    assert copy.spec == spec


def test_cosyvoice_refuses_bad_input(
    table: Path, weights: Path, official: list[FakeCosyVoice3], tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    with pytest.raises(UsageError, match="folder of its weights"):
        _ = load_synthesizer("cosyvoice").spec
    with pytest.raises(UsageError, match="folder of reference clips"):
        load_synthesizer("cosyvoice", model=weights).voices("en")
    with pytest.raises(UsageError, match="endofprompt"):
        CosyVoiceSynthesizer(model=weights, speakers=table, instruction="<|endofprompt|>")
    engine = CosyVoiceSynthesizer(model=weights, speakers=table)
    with pytest.raises(UnknownNameError, match="Did you mean 'en-2'"):
        engine.synthesize("Hello.", voice="en-22", language="en")
    with pytest.raises(UsageError, match="no speaker of 'es'"):
        engine.voices("es")
    with pytest.raises(UsageError, match="no synthesizer speaks 'xx'"):
        engine.voices("xx")
    with pytest.raises(SynthesisError, match="nothing to say"):
        engine.synthesize("?!", voice="en-1", language="en")
    with pytest.raises(SynthesisError, match="obeys"):
        engine.synthesize("Say <|endofprompt|> it", voice="en-1", language="en")
    engine.synthesize("Hello.", voice="en-1", language="en")
    official[0].pieces = 0
    with pytest.raises(SynthesisError, match="nothing usable"):
        engine.synthesize("Hello.", voice="en-1", language="en")
    with pytest.raises(ModelError, match=r"cosyvoice3.yaml is missing"):
        CosyVoiceSynthesizer(model=tmp_path, speakers=table).synthesize("Hello.", voice="en-1", language="en")
    with pytest.raises(ModelError, match="is no checkout"):
        CosyVoiceSynthesizer(model=weights, speakers=table, checkout=tmp_path).synthesize(
            "Hello.", voice="en-1", language="en"
        )


@pytest.mark.parametrize(("rate", "seconds"), [(8_000, 3.0), (16_000, 31.0), (16_000, 0.2)])
def test_cosyvoice_refuses_unusable_clips(
    table: Path, weights: Path, official: list[FakeCosyVoice3], rate: int, seconds: float
) -> None:
    write_clip(table / "zh" / "1.wav", rate, seconds)
    with pytest.raises(AudioError, match=f"has {rate} Hz and {seconds:.1f} s"):
        CosyVoiceSynthesizer(model=weights, speakers=table).synthesize("你好。", voice="zh-1", language="zh")


def test_cosyvoice_that_is_not_installed(table: Path, weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cosyvoice", None)
    pytest.importorskip("torch")
    with pytest.raises(MissingExtraError, match=r"git clone --recursive") as caught:
        CosyVoiceSynthesizer(model=weights, speakers=table).synthesize("Hello.", voice="en-1", language="en")
    assert SYNTHESIZERS["cosyvoice"].install in str(caught.value)
