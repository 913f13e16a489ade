"""Runs made from seeded random numbers, as a pipeline would write them: degraded transcripts, ranks, scores, clips."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from squtr.harness.metrics.error_counts import ErrorCounts, count_errors
from squtr.harness.metrics.robustness import loss
from squtr.harness.metrics.statistics import Interval, corpus_rate_interval, mean_interval
from squtr.harness.results.old import (
    SECONDS_SCHEMA,
    DataInfo,
    Environment,
    Failures,
    Latency,
    Loss,
    Result,
    RunRecord,
    Score,
    SystemInfo,
    Timing,
    items_table,
    write_run,
)
from squtr.loaders.audio import encode_flac
from squtr.loaders.conditions import parse_condition

CONDITIONS = ("text", "clean", "medium_noise", "high_noise", "snr_-5", "reverb", "reverb_medium_noise")
SYSTEMS = (("whisper-base", "BM25"), ("whisper-base", "MiniLM-L6"), ("whisper-small", "BM25"))
QUERIES = {
    "en": "Which savings account makes me wait fifty days before I can get my <b>cash</b>?",
    "zh": "存了溯澜存款，银行要是倒闭了，最多赔我多少？",
}
WORDS = {
    "en": [
        "bank",
        "fee",
        "card",
        "rate",
        "loan",
        "sleep",
        "heart",
        "doctor",
        "river",
        "museum",
        "fifteen",
        "fifty",
        "comet",
        "bread",
    ],
    "zh": list("银行利率贷款医生心脏河流博物馆十五四十彗星行星面包冬天问题"),
}
METRICS = ("ndcg_at_10", "mrr_at_10", "recall_at_10")
FAMILIES = ("babble", "traffic", "kitchen")


@dataclass(frozen=True)
class Parts:
    """What a system is made of.

    A retriever is written by its name, "rrf(A, B)" for a hybrid, "A > B" for a reranker B. A system with an `encoder`
    is end-to-end, one without a transcriber a ready run.
    """

    transcriber: str = ""
    retriever: str = ""
    front_end: str = ""
    encoder: str = ""
    n_best: int = 1

    @property
    def name(self) -> str:
        """As the harness names it."""
        front = f"{self.front_end} | " if self.front_end else ""
        best = f" ({self.n_best}-best)" if self.n_best > 1 else ""
        return front + " + ".join(filter(None, (self.transcriber, self.encoder or self.retriever))) + best

    @property
    def kind(self) -> Literal["cascade", "end-to-end", "run"]:
        """The kind of system."""
        return "end-to-end" if self.encoder else "cascade" if self.transcriber else "run"


EVERY_KIND = (
    Parts("whisper-base", "BM25"),
    Parts("whisper-base", "BM25", front_end="WPE"),
    Parts("whisper-base", "BM25", n_best=5),
    Parts("whisper-base", "rrf(BM25, MiniLM-L6)"),
    Parts("whisper-base", "rrf(BM25, MiniLM-L6) > bge-reranker-base"),
    Parts(encoder="omni-embed-nemotron-3b"),
    Parts(retriever="our.trec"),
)
"""One system of every kind, and pairs that differ in one part."""


@dataclass(frozen=True)
class Example:
    """What to make. `part` of the queries are evaluated where it is below 1."""

    languages: tuple[str, ...] = ("en", "zh")
    systems: tuple[tuple[str, str] | Parts, ...] = SYSTEMS
    conditions: tuple[str, ...] = CONDITIONS
    n: int = 24
    seed: int = 7
    first_text: dict[str, str] = field(default_factory=lambda: dict(QUERIES))
    part: float = 1.0

    @property
    def parts(self) -> list[Parts]:
        """The systems."""
        return [s if isinstance(s, Parts) else Parts(*s) for s in self.systems]


def example_records(example: Example | None = None) -> list[RunRecord]:
    """All runs of the example, with losses against `text` and `clean` where those are among the conditions."""
    example = example or Example()
    return [
        record
        for language in example.languages
        for system in example.parts
        for record in _records(example, language, system)
    ]


def write_example(folder: Path, example: Example | None = None, *, clips: int = 2) -> list[RunRecord]:
    """Write the example's runs, and tiny real clips of the first `clips` queries in every spoken condition."""
    example = example or Example()
    records = example_records(example)
    for record in records:
        write_run(folder, record)
    for language in example.languages:
        for number in range(clips):
            for condition in example.conditions:
                if condition != "text":
                    place = folder / "samples" / f"mini-{language}" / f"{language}-q{number:02d}"
                    place.mkdir(parents=True, exist_ok=True)
                    (place / f"{condition}.flac").write_bytes(tiny_clip(number))
    return records


def tiny_clip(number: int) -> bytes:
    """A quarter of a second of a tone, FLAC."""
    time = np.arange(6000) / 24000
    return encode_flac((0.2 * np.sin(2 * np.pi * (220 + 110 * number) * time)).astype(np.float32), "tone")


def _records(example: Example, language: str, system: Parts) -> list[RunRecord]:
    rows = {c: _rows(example, language, system, c) for c in example.conditions}
    return [_record(example, language, system, condition, rows) for condition in example.conditions]


def _severity(condition: str) -> float:
    if condition == "text":
        return 0.0
    parsed = parse_condition(condition)
    noise = 0.0 if parsed.snr_db is None else 1 / (1 + math.exp((parsed.snr_db - 1) / 3.5))
    return min(0.95, 0.05 + 0.75 * noise + (0.12 if parsed.reverb else 0))


def _rows(example: Example, language: str, system: Parts, condition: str) -> list[dict[str, Any]]:
    blank = "" if language == "zh" else " "
    rows = []
    for number in range(example.n):
        # The query and its difficulty are the same in every condition and system; the damage is drawn for each.
        base = np.random.default_rng([example.seed, len(language), ord(language[0]), number])
        words = [str(w) for w in base.choice(WORDS[language], size=7 if language == "en" else 12)]
        text = example.first_text.get(language, "") if number == 0 else blank.join(words)
        text = text or blank.join(words)
        difficulty = base.random()
        ear = system.front_end + (system.transcriber or system.encoder or system.retriever)
        draw = np.random.default_rng([example.seed, number, *map(ord, ear + condition)])
        rate = _severity(condition) * (0.6 if ear == "whisper-small" else 1.0)
        if system.front_end:
            rate *= 0.7 if condition.startswith("reverb") else 1.05
        said = text.split() if blank else list(text)
        heard = []
        for word in said:
            chance = draw.random()
            if chance > rate:
                heard.append(word)
            elif chance < rate * 0.7:
                heard.append(str(draw.choice(WORDS[language])))
            if draw.random() < rate * 0.08:
                heard.append(str(draw.choice(WORDS[language])))
        lost = condition != "text" and draw.random() < rate * 0.05
        transcript = text if condition == "text" else "" if lost else blank.join(heard)
        # Systems with the same transcriber heard the same.
        draw = np.random.default_rng([example.seed, number, *map(ord, ear + system.retriever + condition)])
        if condition == "text":
            draw = np.random.default_rng([example.seed, number, *map(ord, system.retriever)])
        counts = count_errors(said, transcript.split() if blank else list(transcript))
        skill = {"BM25": 0.74, "MiniLM-L6": 0.8}.get(system.retriever, 0.85)
        skill += 0.02 * (system.n_best > 1 and condition != "text")
        hit = max(0.0, skill + 0.5 * (0.5 - difficulty) - 0.6 * counts.rate * draw.random() * 1.6)
        rank = 0 if hit < 0.12 else max(1, round((1 - hit) * 9))
        ndcg = 0.0 if rank == 0 or rank > 10 else min(1.0, 1 / math.log2(rank + 1) * (0.85 + 0.15 * draw.random()))
        spoken, worded = condition != "text", bool(system.transcriber)
        if spoken and not worded:
            transcript, lost = "", False
        parsed = parse_condition(condition) if spoken else None
        noisy = parsed is not None and parsed.snr_db is not None
        rows.append(
            {
                "id": f"{language}-q{number:02d}",
                "subset": f"mini-{language}",
                "language": language,
                "group": ("finance", "health")[number % 2],
                "condition": condition,
                "text": text,
                "transcript": transcript,
                "error": "",
                "loop": False,
                "truncated": False,
                "empty": lost,
                "hallucination": False,
                "word_errors": float(counts.errors) if spoken and worded and language != "zh" else math.nan,
                "word_reference_length": float(counts.reference_length)
                if spoken and worded and language != "zh"
                else math.nan,
                "char_errors": float(counts.errors) if spoken and worded else math.nan,
                "char_reference_length": float(counts.reference_length) if spoken and worded else math.nan,
                "ndcg_at_10": ndcg,
                "mrr_at_10": 0.0 if rank == 0 or rank > 10 else 1 / rank,
                "recall_at_10": float(0 < rank <= 10),
                "first_relevant_rank": rank,
                "documents": [f"{language}-d{int(d):03d}" for d in draw.choice(120, size=10, replace=False)],
                "scores": [float(10 - k) for k in range(10)],
                "snr_db": parsed.snr_db if noisy and parsed else math.nan,
                "snr_active_db": parsed.snr_db + 0.7 if noisy and parsed and parsed.snr_db is not None else math.nan,
                "noise_id": f"{FAMILIES[number % 3]}-{number % 5}" if noisy else "",
                "noise_family": FAMILIES[number % 3] if noisy else "",
                "rir_id": f"room-{number % 7}" if parsed and parsed.reverb else "",
                "rt60_s": 0.25 + 0.9 * difficulty if parsed and parsed.reverb else math.nan,
                "drr_db": -2.0 if parsed and parsed.reverb else math.nan,
                "voice": f"voice-{number % 4}" if spoken else "",
                "duration_s": 3.5 + difficulty if spoken else math.nan,
                "audio_sha256": "ab" * 32 if spoken else "",
            }
        )
    return rows


def _score(value: float, bounds: Interval, n: int) -> Score:
    def finite(number: float) -> float | None:
        return number if math.isfinite(number) else None

    return Score(value=finite(value), low=finite(bounds.low), high=finite(bounds.high), n=n)


def _record(
    example: Example, language: str, system: Parts, condition: str, rows: dict[str, list[dict[str, Any]]]
) -> RunRecord:
    own = rows[condition]
    n = len(own)
    scores: dict[str, Score] = {}
    for metric in METRICS:
        values = [row[metric] for row in own]
        scores[metric] = _score(float(np.mean(values)), mean_interval(values, seed=example.seed), n)
    if condition != "text" and system.transcriber:
        unit, name = ("char", "cer") if language == "zh" else ("word", "wer")
        errors = [(row[f"{unit}_errors"], row[f"{unit}_reference_length"]) for row in own]
        counts = [ErrorCounts(0, 0, int(e), int(length)) for e, length in errors]
        total = sum(counts, ErrorCounts.zero())
        scores[name] = _score(total.rate, corpus_rate_interval(counts, seed=example.seed), n)
        rates = [c.rate for c in counts]
        scores[f"{name}_macro"] = _score(float(np.mean(rates)), mean_interval(rates, seed=example.seed), n)
    losses: dict[str, dict[str, Loss]] = {}
    for baseline in ("text", "clean"):
        if baseline in rows and condition not in ("text", baseline):
            losses[baseline] = {m: _loss(own, rows[baseline], m, example.seed) for m in METRICS}
    spoken = condition != "text"
    seconds = _seconds(system, own) if spoken and system.kind != "run" else None
    result = Result(
        benchmark_version="1",
        squtr_version="0.1.0",
        data=DataInfo(
            source="mini",
            source_version="1",
            revision="",
            license="CC-BY-4.0",
            config=f"{language}_{condition}",
            language=language,
            condition=condition,
            subsets=[f"mini-{language}"],
            n=n,
            n_total=n if example.part == 1 else round(n / example.part),
            partial=example.part < 1,
            manifest_sha256="0123456789abcdef" * 4,
            recipe={"seed": example.seed, "noise_bank": "embedded", "room_bank": "embedded", "level": "whole"},
        ),
        system=_system_info(system, language, spoken=spoken),
        scores=scores,
        by_subset={f"mini-{language}": scores},
        losses=losses,
        failures=Failures(
            undecodable=0,
            loops=1 if condition == "snr_-5" and system.transcriber else 0,
            truncated=0,
            empty=sum(row["empty"] for row in own),
            hallucinations=0,
            missing=0,
            no_relevant=0,
            unjudged=0,
        ),
        timing=_timing(system, own, seconds),
        environment=Environment(
            hardware="2 cores, x86_64",
            threads=2,
            python="3.11.9",
            packages={"bm25s": "0.3.9", "faster-whisper": "1.2.0"},
        ),
        seed=example.seed,
    )
    return RunRecord(result, items_table(own), seconds)


def _seconds(system: Parts, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """What hearing took: a recognizer 0.4 s, an encoder 0.1 s, a front end 0.3 s."""
    taken = {"seconds": 0.1 if system.encoder else 0.4, "front_end_seconds": 0.3 if system.front_end else 0.0}
    rows = [{"id": row["id"], "subset": row["subset"], **taken} for row in rows]
    return pa.Table.from_pylist(rows, schema=SECONDS_SCHEMA)


def _timing(system: Parts, rows: Sequence[dict[str, Any]], seconds: pa.Table | None) -> Timing:
    index_s, search_s = (None, None) if system.kind == "run" else (0.12, 0.05)
    if seconds is None:
        return Timing(index_s=index_s, search_s=search_s, peak_memory_mb=812.0, processes=2)
    heard, front = (sum(seconds.column(name).to_pylist()) for name in ("seconds", "front_end_seconds"))
    audio = sum(row["duration_s"] for row in rows)
    middle = 0.5 + 0.3 * bool(system.front_end)
    return Timing(
        index_s=index_s,
        search_s=search_s,
        front_end_s=front if system.front_end else None,
        transcribe_s=heard,
        audio_s=audio,
        rtfx=audio / (heard + front),
        waiting_share=0.013,
        latency=Latency(n=20, p50_s=middle, p90_s=middle * 1.4, p95_s=middle * 1.6, p99_s=middle * 2.5),
        peak_memory_mb=812.0,
        peak_gpu_memory_mb=6144.0 if system.encoder else None,
        energy_j=54_321.0,
        processes=2,
    )


def _system_info(system: Parts, language: str, *, spoken: bool) -> SystemInfo:
    many = spoken and system.n_best > 1
    return SystemInfo(
        kind=system.kind,
        name=system.name,
        front_end=_component("front_end", system.front_end) if spoken and system.front_end else None,
        transcriber=_component("transcriber", system.transcriber, system.n_best)
        if spoken and system.transcriber
        else None,
        encoder=_component("audio_text_encoder", system.encoder) if system.encoder else None,
        retriever=_component("retriever", system.retriever) if system.retriever else None,
        n_best=system.n_best if many else 1,
        n_best_fusion="rrf" if many else "",
        normalizer="default",
        normalizer_version="1",
        script_folding="simplified" if language == "zh" and system.transcriber else "none",
        depth=100,
    )


def _component(kind: str, name: str, n_best: int = 1) -> dict[str, Any]:
    if kind == "retriever" and " > " in name:
        first, _, model = name.rpartition(" > ")
        settings: dict[str, Any] = {"first": _component(kind, first), "candidates": 100, "max_tokens": 512}
        return {**_plain(kind, name, settings), "backend": "rerank", "model": f"BAAI/{model}"}
    if kind == "retriever" and name.startswith("rrf("):
        parts = [_component(kind, part) for part in name[4:-1].split(", ")]
        return {**_plain(kind, name, {"k": 60, "method": "rrf", "parts": parts}), "backend": "hybrid", "model": ""}
    options: dict[str, dict[str, Any]] = {
        "transcriber": {"beam_size": 5, **({"n_best": n_best} if n_best > 1 else {})},
        "front_end": {"delay": 3, "iterations": 3, "taps": 10},
        "audio_text_encoder": {"dtype": "bfloat16", "query_prompt": "query: ", "long_clips": {"seconds": 30}},
    }
    return _plain(kind, name, options.get(kind, {"b": 0.4, "k1": 0.9}))


def _plain(kind: str, name: str, settings: dict[str, Any]) -> dict[str, Any]:
    fields = {"backend": name.lower(), "kind": kind, "model": name, "name": name, "revision": "0" * 40}
    return {**fields, "settings": settings}


def imported_records(example: Example | None = None) -> list[RunRecord]:
    """The first system's runs as another tool's aggregates: no intervals, no records, nothing but the scores."""
    records = []
    for record in example_records(example):
        result = record.result
        if result.system.name != (example or Example()).parts[0].name:
            continue
        subset = result.data.subsets[0]
        scores = {name: Score(value=score.value, n=score.n) for name, score in result.scores.items()}
        data = result.data.model_copy(
            update={"source": "mteb", "source_version": "", "config": f"{subset}_{result.data.condition}", "recipe": {}}
        )
        unstated = {"name": "org/model", "normalizer": "", "normalizer_version": "", "script_folding": "", "depth": 0}
        update = {
            "origin": "imported",
            "data": data,
            "system": result.system.model_copy(update=unstated),
            "scores": scores,
            "by_subset": {subset: scores},
            "losses": {},
            "timing": Timing(),
            "environment": Environment(hardware="", threads=0, python="", packages={}),
        }
        records.append(RunRecord(result.model_copy(update=update), items_table([])))
    return records


def _loss(own: Sequence[dict[str, Any]], base: Sequence[dict[str, Any]], metric: str, seed: int) -> Loss:
    lost = loss({r["id"]: r[metric] for r in own}, {r["id"]: r[metric] for r in base}, seed=seed)
    return Loss(
        absolute=_score(lost.absolute, lost.interval_absolute, lost.n),
        relative=_score(lost.relative, lost.interval_relative, lost.n),
    )


def edit_json(folder: Path, name: str, change: dict[str, dict[str, Any]]) -> None:
    """Change fields of one stored result."""
    path = next((folder / "results").rglob(name))
    content = json.loads(path.read_text(encoding="utf-8"))
    for group, fields in change.items():
        content[group].update(fields)
    path.write_text(json.dumps(content), encoding="utf-8")
