"""A computed dry run: sizes and counts are right, formulas are those that are stated, and what is kept was measured."""

from __future__ import annotations

import hashlib
import json
import math
import random
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import squtr
from squtr.errors import DataError, UnknownNameError
from squtr.harness.cli import main
from squtr.harness.components import hub_sizes
from squtr.harness.components.hub_sizes import hub_bytes, needed_files
from squtr.harness.components.model_sizes import SIZES, repository_of, size_of
from squtr.harness.components.parameter_count import count_parameters
from squtr.harness.components.weights import find_weights
from squtr.harness.data import open_data
from squtr.harness.evaluate import computed_forecast
from squtr.harness.evaluation.computed import PROMPT_TOKENS, ComputedPlan, Work
from squtr.harness.evaluation.gpus import GPUS, UTILIZATION
from squtr.harness.evaluation.options import Options
from squtr.harness.evaluation.stand_in import StandInQuestions, StandInSpeech, open_stand_in
from squtr.harness.evaluation.store import Ranking, RankingKey, Store
from squtr.harness.evaluation.stored_sizes import stored_rankings, stored_transcripts
from squtr.harness.evaluation.workload import CellLoad, tokens_of
from squtr.harness.protocols import ComponentSpec, Hit, Transcript

A100 = GPUS["A100-80G"]
QUERIES = {"en": 11_505, "zh": 25_812}
COMMON = "the water of a house in winter has many people who find old river stones and garden lamps".split()


def text_of(seed: str) -> str:
    chosen = random.Random(seed)
    return " ".join(chosen.choice(COMMON) for _ in range(10)) + f" {seed[:6]}"


class Distinct:
    """Another text for every clip."""

    sample_rate = 16_000
    spec = ComponentSpec("transcriber", "class", "distinct", revision="1")

    def supports(self, language: str) -> bool:
        return True

    def transcribe(self, clips: Sequence[np.ndarray], *, language: str) -> list[Transcript]:
        return [Transcript(text_of(hashlib.sha256(clip.tobytes()).hexdigest()), seconds=0.1) for clip in clips]


def works(plan: ComputedPlan, stage: str) -> dict[str, Work]:
    return {work.component.name: work for work in plan.works if work.stage == stage}


@pytest.fixture(scope="module")
def whole() -> ComputedPlan:
    return computed_forecast(["paper:squtr"], open_stand_in("stand-in:squtr"))


def test_stand_in_data_has_the_published_size() -> None:
    data = open_stand_in("stand-in:squtr")
    assert isinstance(data, StandInSpeech)
    assert sum(len(data.queries(subset)) for subset in data.subsets) == sum(QUERIES.values()) == 37_317
    assert {s: len(data.documents(s)) for s in ("fiqa", "hotpotqa")} == {"fiqa": 57_638, "hotpotqa": 5_233_329}
    assert sum(len(grades) for grades in data.qrels("duretrieval").values()) == 9_839
    documents = data.documents("fiqa")
    words = [len(document.contents.split()) for document in documents[:5_000]]
    assert sum(words) / len(words) == pytest.approx(132.32, abs=0.01)
    assert documents[57_637].id == documents.ids[57_637] == "d57637"
    hours = 4 * sum(len(data.queries(s)) * data.seconds(s) for s in data.subsets) / 3600
    assert hours == pytest.approx(190.4, abs=0.5)
    with pytest.raises(DataError, match="fiqa under clean is stand-in data"):
        data.spoken("fiqa", "clean")
    with pytest.raises(UnknownNameError, match="unknown stand-in data 'squt'"):
        open_stand_in("stand-in:squt")


def test_stand_in_questions_have_the_published_size() -> None:
    data = open_stand_in("stand-in:escucha")
    assert isinstance(data, StandInQuestions)
    questions = list(data.questions())
    seconds = sorted(one.duration_s for one in questions)
    assert sum(seconds) / 3600 == pytest.approx(163, abs=0.2)
    assert (seconds[499] + seconds[500]) / 2 == pytest.approx(86.2, abs=0.1)
    assert (seconds[0], seconds[-1]) == (6.7, 5100.0)
    assert sum(one.kind == "aif" for one in questions) == 100
    assert sum(one.comparative for one in questions) == 254
    assert sum(bool(one.question_audio) for one in questions) == 100


def test_the_full_grid_is_planned_in_seconds_and_little_memory() -> None:
    tracemalloc.start()
    started = time.perf_counter()
    plan = computed_forecast(["paper:squtr"], open_stand_in("stand-in:squtr"))
    elapsed = time.perf_counter() - started
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert elapsed < 30
    assert peak < 200e6
    assert len(plan.systems) == 119


def test_counts_of_the_full_grid(whole: ComputedPlan) -> None:
    assert len(whole.configs) == 2 * 5
    transcribed = works(whole, "transcribe")
    assert {name: work.items for name, work in transcribed.items()} == {
        **dict.fromkeys(transcribed, 4 * 37_317),
        "Paraformer-Large": 4 * QUERIES["zh"],
    }
    assert len(transcribed) == 10
    searched = [work for work in whole.works if work.stage == "embed queries"]
    by_name = {(work.component.name, work.scope.startswith("fiqa")): work.items for work in searched}
    # Typed queries once, and those of nine transcribers (ten in Chinese) under four conditions.
    assert by_name["All-MiniLM-L6-v2", True] == QUERIES["en"] * (1 + 4 * 9)
    assert by_name["BGE-Small-v1.5", False] == QUERIES["zh"] * (1 + 4 * 10)
    assert by_name["BGE-M3-dense", False] == QUERIES["en"] * 37 + QUERIES["zh"] * 41
    documents = {work.component.repository: work.items for work in whole.works if work.stage == "embed documents"}
    assert documents["BAAI/bge-m3"] == 8_292_040
    assert documents["BAAI/bge-small-zh-v1.5"] == 319_605
    # Every system's items: 37,317 queries under five conditions, where it has both languages.
    (records,) = [one for one in whole.stored if one.what == "results"]
    both = 9 * 10 + 1
    assert records.items == 5 * (both * 37_317 + 9 * 2 * QUERIES["en"] + 10 * QUERIES["zh"])


def test_times_are_the_stated_formula(whole: ComputedPlan) -> None:
    work = next(w for w in whole.works if w.component.name == "Qwen3-Embedding-8B" and w.stage == "embed documents")
    tokens = sum(
        n * length * factor
        for n, length, factor in (
            (57_638, 132.32, 1.4), (5_233_329, 46.30, 1.4), (2_681_468, 78.88, 1.4),
            (100_001, 398.59, 1.0), (100_999, 122.04, 1.0), (118_605, 874.12, 1.0),
        )
    )  # fmt: skip
    multiplied = 7_567_295_488 - 621_219_840
    assert work.operations == pytest.approx(2 * multiplied * tokens, rel=0.02)
    assert work.seconds(A100) == pytest.approx(work.operations / (312e12 * UTILIZATION))
    bge = next(w for w in whole.works if w.component.repository == "BAAI/bge-large-en-v1.5")
    assert bge.seconds(A100) == pytest.approx(bge.operations / (19.5e12 * UTILIZATION))

    whisper = works(whole, "transcribe")["Whisper-Large-v3"]
    size = SIZES["openai/whisper-large-v3"]
    clips = 4 * 37_317
    decoder = size.parameters - size.encoder
    frames = 2 * size.encoder * 1500 * clips
    assert frames < whisper.operations < 1.2 * frames
    written = (whisper.operations - frames) / (2 * decoder)
    batch = whisper.component.batch_on(A100, whisper.positions)
    expected = whisper.operations / (312e12 * UTILIZATION) + written * decoder * 2 / batch / 2.039e12
    assert whisper.seconds(A100) == pytest.approx(expected)
    assert math.isnan(next(w for w in whole.works if w.stage == "index").seconds(A100))


def test_memory_is_weights_and_a_batch_that_fits(whole: ComputedPlan) -> None:
    by_name = {one.name: one for one in whole.components}
    assert by_name["Qwen3-Embedding-8B"].weights == 2 * 7_567_295_488
    assert by_name["BGE-M3-dense"].weights == 4 * 568_000_000
    whisper = by_name["Whisper-Large-v3"]
    positions = whole.positions(whisper)
    assert positions <= 1500 + PROMPT_TOKENS
    for gpu in GPUS.values():
        batch = whisper.batch_on(gpu, positions)
        assert whisper.weights + whisper.working(batch, positions) <= gpu.memory
    assert whisper.batch_on(GPUS["RTX-4090"], positions) < whisper.batch_on(A100, positions)
    assert by_name["Paraformer-Large"].batch_on(A100, 100.0) == 1


def test_what_does_not_fit_has_no_time() -> None:
    data = open_stand_in("stand-in:squtr")
    plan = computed_forecast(["glm-asr:zai-org/GLM-ASR-Nano-2512 + dense:Qwen/Qwen3-Embedding-8B"], data)
    (work,) = [w for w in plan.works if w.stage == "embed documents"]
    # In float32, the default, 30 GB of weights.
    assert math.isnan(work.seconds(GPUS["RTX-4090"]))
    assert work.seconds(A100) > 0


def test_configs_parts_and_options_are_those_of_the_evaluation() -> None:
    data = open_stand_in("stand-in:squtr")
    only = ["Whisper-Base + BGE-M3-dense", "Paraformer-Large + BGE-M3-dense"]
    plan = computed_forecast(["paper:squtr"], data, only=only, configs=["en_clean"], options=Options(limit=100))
    assert plan.configs == ["en_text", "en_clean"]
    assert {name: work.items for name, work in works(plan, "transcribe").items()} == {"Whisper-Base": 300}
    assert works(plan, "embed queries")["BGE-M3-dense"].items == 600
    narrow = computed_forecast(["paper:squtr"], data, only=only, configs=["en_clean"], overrides={"dtype": "float16"})
    (m3,) = [one for one in narrow.components if one.name == "BGE-M3-dense"]
    assert m3.weights == 2 * 568_000_000
    with pytest.raises(UnknownNameError, match="unknown config 'fr_clean'"):
        computed_forecast(["whisper-base + bm25"], data, configs=["fr_clean"])


def test_all_parts_of_a_system_count() -> None:
    data = open_stand_in("stand-in:squtr")
    written = "wpe | whisper-tiny + rrf(bm25, dense:BAAI/bge-m3) > rerank:some/reranker"
    plan = computed_forecast([written, "whisper-tiny + bm25"], data, configs=["fiqa_clean"])
    # Behind a front end a transcriber has other clips.
    assert sum(work.stage == "transcribe" for work in plan.works) == 2
    assert {one.repository for one in plan.components} == {
        "Systran/faster-whisper-tiny", "BAAI/bge-m3", "some/reranker",
    }  # fmt: skip
    assert plan.downloads["some/reranker"] is None
    rewritten = computed_forecast(
        ["whisper-tiny + rewrite:Qwen/Qwen3-4B + bm25", "whisper-tiny + bm25"], data, configs=["fiqa_clean"]
    )
    assert works(rewritten, "rewrite")["Qwen3-4B"].items == 648
    assert sum(one.items for one in rewritten.stored if one.what == "rankings") == 648 * 3


def test_questions_are_counted_written_and_spoken() -> None:
    plan = computed_forecast(["paper:escucha"], open_stand_in("stand-in:escucha"))
    answered = works(plan, "answer")
    assert {work.items for work in answered.values()} == {1_100}
    omni = answered["Qwen2.5-Omni-7B"]
    # Clips of up to 85 minutes are cut to 300 s.
    assert omni.positions == pytest.approx(300 * 25 + PROMPT_TOKENS)
    assert math.isnan(answered["GPT-4o-audio"].seconds(A100))
    assert "gpt-4o-audio-preview" not in plan.downloads
    assert {work.component.name for work in plan.works if work.stage == "transcribe"} == {"Whisper-Large-v3"}


def test_the_command_prints_all_of_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_sizes, "hub_bytes", lambda repositories: {})
    command = ["evaluate", "--system", "paper:squtr", "--data", "stand-in:squtr", "--dry-run"]
    assert main(command) == 0
    said = capsys.readouterr().out
    for words in (
        "119 systems on 10 configs: en_text, zh_text", "A100-80G  H200", "Qwen/Qwen3-Embedding-8B", "15.1 GB",
        "FunAudioLLM/Fun-ASR-Nano-2512, whose size is not known", "vectors", "another download of 21.1 GB",
        "Nothing was evaluated or downloaded.",
    ):  # fmt: skip
        assert words in said
    assert main([*command, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["downloads"]["Qwen/Qwen3-Embedding-8B"] == 14_433 << 20
    assert plan["downloads"]["FunAudioLLM/Fun-ASR-Nano-2512"] is None
    assert {stage["seconds"]["H200"] for stage in plan["stages"] if stage["stage"] == "index"} == {None}
    assert all(one["parameters"] for one in plan["components"])


def test_stand_in_data_is_for_dry_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "run")]
    assert main(["evaluate", "whisper-base + bm25", "--data", "stand-in:squtr", *out]) == 2
    assert "stand-in:squtr has the size of the data and no audio or text. Add --dry-run" in capsys.readouterr().err
    assert main(["evaluate", "whisper-base + bm25", "--data", "mini", "--computed", *out]) == 2
    assert "--computed is for a dry run. Add --dry-run." in capsys.readouterr().err
    assert main(["evaluate", "whisper-base", "--data", "stand-in:rir_mega", "--dry-run", "--front-end", "wpe"]) == 2
    assert "front ends are not in a computed plan" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_kept_rows_are_as_large_as_computed(tmp_path: Path) -> None:
    store, n = Store(tmp_path), 1_500
    empty = store.path.stat().st_size
    keys = [hashlib.sha256(str(i).encode()).hexdigest() for i in range(n)]
    texts = {key: (Transcript(text_of(key), seconds=0.3), 4.5) for key in keys}
    files = {hashlib.sha256(key.encode()).hexdigest(): key for key in keys}
    store.keep_transcripts(files, texts, language="en", model="0123456789abcdef")
    transcripts = store.path.stat().st_size
    chosen = random.Random(0)
    hits = {key: [Hit(str(chosen.randrange(5_000_000)), chosen.random()) for _ in range(100)] for key in keys}
    place = RankingKey("0123456789abcdef", keys[0], "en", 100)
    store.keep_rankings(place, {key: Ranking.of(found, 0.01) for key, found in hits.items()})
    rankings = store.path.stat().st_size
    cell = CellLoad("en", n, 4.5, 12.0, sum(len(t.text) for t, _ in texts.values()) / n)
    assert stored_transcripts("", [cell]).bytes == pytest.approx(transcripts - empty, rel=0.3)
    assert stored_rankings("", [cell], 100).bytes == pytest.approx(rankings - transcripts, rel=0.3)


def test_what_a_small_run_keeps_is_as_computed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    system = "class:tests.harness.test_computed_plan:Distinct + dense:all-minilm-l6-v2"
    run, cache = tmp_path / "run", tmp_path / "cache"
    part: dict[str, Any] = {"configs": ["en_clean"], "limit": 16, "samples": 0, "resamples": 20, "self_check": False}
    squtr.evaluate(system, data="mini", out=run, cache=cache, **part)
    words = ["--data", "mini", "--configs", "en_clean", "--limit", "16", "--dry-run", "--computed", "--json"]
    assert main(["evaluate", system, *words]) == 0
    stored: dict[str, int] = {}
    for line in json.loads(capsys.readouterr().out)["stored"]:
        stored[line["what"]] = stored.get(line["what"], 0) + line["bytes"]

    def held(folder: Path) -> int:
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

    measured = {"vectors": held(cache / "embeddings"), "results": held(run)}
    for what, size in measured.items():
        assert size / 2 < stored[what] < size * 2, (what, size, stored[what])


@pytest.mark.parametrize("size", ["tiny", "base"])
def test_sizes_of_whisper_are_those_of_the_library(size: str) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    layers, width = {"tiny": (4, 384), "base": (6, 512)}[size]
    config = transformers.WhisperConfig(
        vocab_size=51865, num_mel_bins=80, d_model=width, encoder_layers=layers, decoder_layers=layers,
        encoder_attention_heads=width // 64, decoder_attention_heads=width // 64, encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
    )  # fmt: skip
    with torch.device("meta"):
        model = transformers.WhisperForConditionalGeneration(config).model
    listed = SIZES[f"openai/whisper-{size}"]
    assert sum(p.numel() for p in model.parameters()) == listed.parameters
    assert sum(p.numel() for p in model.encoder.parameters()) == listed.encoder
    assert listed.cache == 2 * layers * width


def test_sizes_of_packaged_weights_are_those_of_their_files() -> None:
    for backend, name in (("faster-whisper", "whisper-base"), ("dense", "all-minilm-l6-v2")):
        counted, listed = count_parameters(find_weights(name).path), size_of(backend, name)
        assert listed is not None
        assert counted == pytest.approx(listed.parameters, rel=0.02)


def test_every_size_has_a_source_and_adds_up() -> None:
    for name, size in SIZES.items():
        assert size.source, name
        assert size.parameters > size.embedding + size.encoder or size.encoder == size.parameters, name
        if size.download and size.stored:
            width = {"float32": 4, "bfloat16": 2, "float16": 2}[size.stored]
            # Files beside the weights: tokenizers.
            assert size.download == pytest.approx(size.parameters * width, rel=0.1), name
    assert repository_of("funasr", "paraformer-large").startswith("iic/speech_paraformer-large")
    assert size_of("openai-whisper", "large-v3") == size_of("faster-whisper", "whisper-large-v3")


def test_sizes_of_text_encoders_are_those_of_mteb() -> None:
    mteb = pytest.importorskip("mteb")
    for name in ("BAAI/bge-m3", "Qwen/Qwen3-Embedding-8B", "google/embeddinggemma-300m"):
        meta, size = mteb.get_model_meta(name), SIZES[name.lower()]
        told = (meta.n_parameters, meta.memory_usage_mb * 2**20, meta.n_embedding_parameters, meta.embed_dim)
        assert told == (size.parameters, size.download, size.embedding, size.dimension)


def test_tokens_are_counted_as_stated() -> None:
    transformers = pytest.importorskip("transformers")
    assert tokens_of([], "en") == 0
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(find_weights("all-minilm-l6-v2").path))
    data: Any = open_data("mini")
    texts = [document.contents for document in data.documents("mini-en")]
    counted = sum(map(len, tokenizer(texts)["input_ids"])) / len(texts)
    assert tokens_of(texts, "en") == pytest.approx(counted, rel=0.2)


def test_the_hub_is_asked_once_where_it_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    class File:
        def __init__(self, name: str, size: int) -> None:
            self.rfilename, self.size = name, size

    asked: list[str] = []

    def model_info(_: Any, repository: str, **options: Any) -> Any:
        asked.append(repository)
        if repository == "no/network":
            raise ConnectionError("no route")
        files = [File("model.safetensors", 8), File("onnx/model.onnx", 9), File("pytorch_model.bin", 8)]
        return type("Told", (), {"siblings": files})()

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", model_info)
    assert hub_bytes(["a/b", "no repository", "no/network", "c/d"]) == {"a/b": 8}
    assert asked == ["a/b", "no/network"]
    assert needed_files({"1/a.bin": 1, "2/model.safetensors": 2}) == {"1/a.bin": 1, "2/model.safetensors": 2}
