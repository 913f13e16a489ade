"""`paper:<name>`: the packaged spec files hold what the papers evaluated, and need nothing to be read."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from squtr.errors import MissingExtraError, SqutrError, UnknownNameError
from squtr.harness.cli import main
from squtr.harness.components.transcribers.presets import PRESETS
from squtr.harness.systems import System, load_systems
from squtr.harness.systems.entries import SystemEntry, entries_of
from squtr.harness.systems.papers import PAPERS, paper_file
from squtr.harness.systems.reading import written_entries
from squtr.harness.systems.selecting import check_installed, name_of, selected
from squtr.harness.systems.short_form import parse_short_form
from squtr.leaderboard.published import rir_mega_entries, squtr_entries

TRANSCRIBERS, RETRIEVERS = 10, 12


@pytest.fixture(scope="module")
def squtr_systems() -> dict[str, System]:
    return {system.name: system for system in load_systems(["paper:squtr"])}


def entry_of(name: str) -> SystemEntry:
    return next(entry for entry in written_entries(["paper:squtr"]) if name_of(entry) == name)


def test_all_published_systems_are_there_by_name(squtr_systems: dict[str, System]) -> None:
    published = {entry.system for entry in squtr_entries()}
    assert published <= set(squtr_systems)
    # Paraformer is Chinese, and two retrievers are English: these pairs have no language in common.
    assert len(squtr_systems) == TRANSCRIBERS * RETRIEVERS - 2 + 1
    assert {entry.system for entry in rir_mega_entries()} <= {s.name for s in load_systems(["paper:rir_mega"])}


def test_languages_are_those_of_the_published_tables(squtr_systems: dict[str, System]) -> None:
    for entry in squtr_entries():
        system = squtr_systems[entry.system]
        published = {coverage.language for coverage in entry.coverage.values()}
        assert published <= set(system.languages or ("en", "zh")), entry.system
    assert squtr_systems["Paraformer-Large + BGE-M3-dense"].languages == ("zh",)
    assert squtr_systems["Whisper-Tiny + Stella-EN-400M-v5"].languages == ("en",)
    assert squtr_systems["Whisper-Tiny + All-MiniLM-L6-v2"].languages == ("en",)
    assert squtr_systems["Whisper-Tiny + BGE-Large-v1.5"].languages == ("en", "zh")
    assert not squtr_systems["Omni-Embed-Nemotron-3B"].languages


def test_settings_are_as_stated() -> None:
    whisper = entry_of("Whisper-Large-v3 + BGE-Large-v1.5")
    assert isinstance(whisper.retriever, dict)
    assert {language: one.model for language, one in whisper.retriever.items()} == {
        "en": "BAAI/bge-large-en-v1.5",
        "zh": "BAAI/bge-large-zh-v1.5",
    }
    assert {one.options["query_prompt"] for one in whisper.retriever.values()} == {
        "Represent this sentence for searching relevant passages: "
    }
    (bm25,) = entries_of(entry_of("Paraformer-Large + BM25").retriever)
    assert (bm25.options["k1"], bm25.options["b"]) == (0.9, 0.4)
    (qwen,) = entries_of(entry_of("Whisper-Tiny + Qwen3-Embedding-8B").retriever)
    assert qwen.options["query_prompt"] == (
        "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
    )
    for entry in written_entries(["paper:squtr"]):
        if entry.transcriber is not None:
            assert entry.normalizer == "squtr-compat"
            assert {one.preset for one in entries_of(entry.transcriber)} == {"squtr"}
    for entry in written_entries(["paper:rir_mega"]):
        (one,) = entries_of(entry.transcriber)
        assert (one.backend, one.preset, entry.normalizer) == ("openai-whisper", "whisper-rir-mega", "whisper")
        assert PRESETS[one.preset].options[one.backend]["beam_size"] == 5


def test_equal_components_are_one_object(squtr_systems: dict[str, System]) -> None:
    first = squtr_systems["Whisper-Base + Qwen3-Embedding-8B"]
    assert first.transcriber is squtr_systems["Whisper-Base + BM25"].transcriber
    assert first.retriever is squtr_systems["Paraformer-Large + Qwen3-Embedding-8B"].retriever


def test_files_are_read_without_extras_weights_or_network() -> None:
    code = """
import socket, sys
for module in ("funasr", "qwen_asr", "whisper", "faster_whisper", "openai", "torch", "transformers",
               "sentence_transformers", "huggingface_hub"):
    sys.modules[module] = None
def refused(*_, **__):
    raise AssertionError("the network was asked")
socket.socket.connect = refused
import squtr
print(*(len(squtr.load_systems([f"paper:{name}"])) for name in ("squtr", "rir_mega", "escucha")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["119", "5", "10"]


def test_some_systems_are_taken_by_name() -> None:
    names = [s.name for s in load_systems(["paper:squtr"], only=["*-tiny + bm25", "Omni-*"])]
    assert names == ["Whisper-Tiny + BM25", "Omni-Embed-Nemotron-3B"]
    entries = [parse_short_form("whisper-base + bm25"), parse_short_form("mine=whisper-tiny + bm25")]
    assert [name_of(entry) for entry in selected(entries, ["whisper-*"])] == ["whisper-base + bm25"]
    assert len(selected(entries, [])) == 2
    with pytest.raises(UnknownNameError, match=r"'Whisper-Tinny \+ BM25'. Did you mean 'Whisper-Tiny \+ BM25'"):
        load_systems(["paper:squtr"], only=["Whisper-Tinny + BM25"])


def test_the_name_by_how_a_system_is_written_is_its_name(squtr_systems: dict[str, System]) -> None:
    assert [name_of(entry) for entry in written_entries(["paper:squtr"])] == list(squtr_systems)


def test_unknown_papers_and_faults_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(PAPERS) == {"escucha", "rir_mega", "squtr"}
    assert main(["evaluate", "--system", "paper:squt", "--data", "mini", "--out", "x"]) == 2
    assert "unknown paper 'squt'. Did you mean 'squtr'?" in capsys.readouterr().err
    with pytest.raises(SqutrError, match=r"^paper:squtr: systems\[0\]"):
        load_systems(["paper:squtr"], preset="whisper-rir-mega")


def test_an_extra_that_is_not_installed_is_named_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    find = importlib.util.find_spec

    def lacking(name: str, *rest: Any) -> Any:
        return None if name == "funasr" else find(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", lacking)
    with pytest.raises(MissingExtraError, match=r"squtr\[funasr\] by SenseVoice-Small \+ BM25 and 33 more"):
        check_installed(written_entries(["paper:squtr"]))
    command = ["evaluate", "--system", "paper:squtr", "--data", "mini", "--out", str(tmp_path / "run")]
    assert main([*command, "--only", "SenseVoice-*"]) == 1
    assert "Run: pip install 'squtr[funasr]', or take others with --only" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    check_installed(written_entries(["paper:squtr"], only=["Whisper-*", "GLM-*", "Qwen3-ASR*", "Omni-*"]))


def test_the_files_lie_in_the_package() -> None:
    for name in PAPERS:
        assert paper_file(f"paper:{name}").read_text(encoding="utf-8").startswith("# ")
