"""Runs made from seeded random numbers, as a pipeline would write them: degraded transcripts, ranks, scores, clips."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from squtr.harness.metrics.error_counts import ErrorCounts, count_errors
from squtr.harness.metrics.statistics import Interval, corpus_rate_interval, mean_interval
from squtr.harness.metrics.stratified import unweighted_loss
from squtr.harness.results.envelope import (
    ACOUSTIC_COLUMNS,
    SECONDS_SCHEMA,
    TRANSCRIPT_COLUMNS,
    DataInfo,
    Environment,
    Group,
    Latency,
    Loss,
    Result,
    RunRecord,
    Score,
    SystemInfo,
    Timing,
    item_schema,
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
RT60_EDGES = (0.4, 0.7)
SCHEMA = item_schema(
    *ACOUSTIC_COLUMNS,
    *TRANSCRIPT_COLUMNS,
    *((metric, pa.float64()) for metric in METRICS),
    ("first_relevant_rank", pa.int64()),
    ("documents", pa.list_(pa.string())),
    ("scores", pa.list_(pa.float64())),
)
"""As the retrieval task writes its records."""


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
        model = system.front_end + (system.transcriber or system.encoder or system.retriever)
        draw = np.random.default_rng([example.seed, number, *map(ord, model + condition)])
        rate = _severity(condition) * (0.6 if model == "whisper-small" else 1.0)
        if system.front_end:
            rate *= 0.7 if condition.startswith("reverb") else 1.05
        reference = text.split() if blank else list(text)
        decoded = []
        for word in reference:
            chance = draw.random()
            if chance > rate:
                decoded.append(word)
            elif chance < rate * 0.7:
                decoded.append(str(draw.choice(WORDS[language])))
            if draw.random() < rate * 0.08:
                decoded.append(str(draw.choice(WORDS[language])))
        lost = condition != "text" and draw.random() < rate * 0.05
        transcript = text if condition == "text" else "" if lost else blank.join(decoded)
        # Systems with the same transcriber have the same transcripts.
        draw = np.random.default_rng([example.seed, number, *map(ord, model + system.retriever + condition)])
        if condition == "text":
            draw = np.random.default_rng([example.seed, number, *map(ord, system.retriever)])
        counts = count_errors(reference, transcript.split() if blank else list(transcript))
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
        counted = spoken and worded
        room = parsed is not None and parsed.reverb
        rows.append(
            {
                "id": f"{language}-q{number:02d}",
                "cluster": f"{language}-q{number:02d}",
                "subset": f"mini-{language}",
                "language": language,
                "condition": condition,
                "audio_sha256": "ab" * 32 if spoken else "",
                "error": "",
                "flags": ["empty"] if lost else [],
                **{name: math.nan if kind == pa.float64() else "" for name, kind in ACOUSTIC_COLUMNS},
                "voice": f"voice-{number % 4}" if spoken else "",
                "duration_s": 3.5 + difficulty if spoken else math.nan,
                "snr_db": parsed.snr_db if noisy and parsed else math.nan,
                "noise_id": f"{FAMILIES[number % 3]}-{number % 5}" if noisy else "",
                "noise_family": FAMILIES[number % 3] if noisy else "",
                "rir_id": f"room-{number % 7}" if room else "",
                "rt60_s": 0.25 + 0.9 * difficulty if room else math.nan,
                "drr_db": -2.0 if room else math.nan,
                "text": text,
                "transcript": transcript,
                **_counted("word", counts if counted and language != "zh" else None),
                **_counted("char", counts if counted else None),
                "ndcg_at_10": ndcg,
                "mrr_at_10": 0.0 if rank == 0 or rank > 10 else 1 / rank,
                "recall_at_10": float(0 < rank <= 10),
                "first_relevant_rank": rank,
                "documents": [f"{language}-d{int(d):03d}" for d in draw.choice(120, size=10, replace=False)],
                "scores": [float(10 - k) for k in range(10)],
            }
        )
    return rows


def _counted(unit: str, counts: ErrorCounts | None) -> dict[str, float]:
    kinds = ("substitutions", "deletions", "insertions", "reference_length")
    return {f"{unit}_{kind}": math.nan if counts is None else float(getattr(counts, kind)) for kind in kinds}


def _errors(row: dict[str, Any], unit: str) -> float:
    return float(sum(row[f"{unit}_{kind}"] for kind in ("substitutions", "deletions", "insertions")))


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
        errors = [(_errors(row, unit), row[f"{unit}_reference_length"]) for row in own]
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
    baseline = "text" if "text" in rows else "clean"
    result = Result(
        task="retrieval",
        task_version="1",
        benchmark="squtr",
        benchmark_version="1",
        metrics_version="1",
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
            clusters=n,
            partial=example.part < 1,
            manifest_sha256="0123456789abcdef" * 4,
            recipe={
                "seed": example.seed,
                "noise": [{"name": "embedded", "version": "1", "subsets": []}],
                "rirs": [{"name": "embedded", "version": "1", "subsets": []}],
                "level": "whole",
            },
        ),
        system=_system_info(system, language, spoken=spoken),
        main_metric="ndcg_at_10",
        scores=scores,
        by_group=_groups(own, rows.get(baseline, []), baseline, example.seed) if spoken else {},
        losses=losses,
        failures={
            "loop": 1 if condition == "snr_-5" and system.transcriber else 0,
            "empty": sum("empty" in row["flags"] for row in own),
        },
        timing=_timing(system, own, seconds),
        environment=Environment(
            hardware="2 cores, x86_64",
            threads=2,
            python="3.11.9",
            packages={"bm25s": "0.3.9", "faster-whisper": "1.2.0"},
        ),
        seed=example.seed,
        resamples=1000,
    )
    return RunRecord(result, items_table(own, SCHEMA), seconds)


def _groups(
    own: Sequence[dict[str, Any]], base: Sequence[dict[str, Any]], baseline: str, seed: int
) -> dict[str, list[Group]]:
    """By noise family and by bins of RT60, where the condition has them."""
    found: dict[str, list[Group]] = {}
    typed = {row["id"]: row for row in base}
    ends = (None, *RT60_EDGES, None)
    for name, bins in (("noise_family", [(f, None, None) for f in FAMILIES]), ("rt60_s", _bins(ends))):
        groups = []
        for label, low, high in bins:
            rows = [row for row in own if _within(row[name], label, low, high)]
            if rows:
                lost = _loss(rows, [typed[r["id"]] for r in rows], "ndcg_at_10", seed) if typed else None
                losses = {baseline: {"ndcg_at_10": lost}} if lost is not None else {}
                values = [row["ndcg_at_10"] for row in rows]
                score = _score(float(np.mean(values)), mean_interval(values, seed=seed), len(rows))
                groups.append(
                    Group(
                        label=label,
                        low=low,
                        high=high,
                        n=len(rows),
                        clusters=len(rows),
                        scores={"ndcg_at_10": score},
                        losses=losses,
                    )
                )
        if groups:
            found[name] = groups
    return found


def _bins(ends: Sequence[float | None]) -> list[tuple[str, float | None, float | None]]:
    return [(f"{low}-{high}", low, high) for low, high in itertools.pairwise(ends)]


def _within(value: str | float, label: str, low: float | None, high: float | None) -> bool:
    if isinstance(value, str):
        return value == label
    return (low is None or value > low) and (high is None or value <= high) and math.isfinite(value)


def _seconds(system: Parts, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """A transcriber takes 0.4 s per item, an encoder 0.1 s, a front end 0.3 s."""
    taken = {"seconds": 0.1 if system.encoder else 0.4, "front_end_seconds": 0.3 if system.front_end else 0.0}
    rows = [{"id": row["id"], "subset": row["subset"], **taken, "duration_s": row["duration_s"]} for row in rows]
    return pa.Table.from_pylist(rows, schema=SECONDS_SCHEMA)


def _timing(system: Parts, rows: Sequence[dict[str, Any]], seconds: pa.Table | None) -> Timing:
    stages = {} if system.kind == "run" else {"index": 0.12, "search": 0.05}
    if seconds is None:
        return Timing(stages=stages, peak_memory_mb=812.0, processes=2)
    taken, front = (sum(seconds.column(name).to_pylist()) for name in ("seconds", "front_end_seconds"))
    audio = sum(row["duration_s"] for row in rows)
    middle = 0.5 + 0.3 * bool(system.front_end)
    stages["encode" if system.encoder else "transcribe"] = taken
    if system.front_end:
        stages["front_end"] = front
    return Timing(
        stages=stages,
        audio_s=audio,
        rtfx=audio / (taken + front),
        waiting_share=0.013,
        latency=Latency(n=20, p50_s=middle, p90_s=middle * 1.4, p95_s=middle * 1.6, p99_s=middle * 2.5),
        peak_memory_mb=812.0,
        peak_gpu_memory_mb=6144.0 if system.encoder else None,
        energy_j=54_321.0,
        processes=2,
    )


def _system_info(system: Parts, language: str, *, spoken: bool) -> SystemInfo:
    many = spoken and system.n_best > 1
    components: dict[str, dict[str, Any]] = {}
    if spoken and system.front_end:
        components["front_end"] = _component("front_end", system.front_end)
    if spoken and system.transcriber:
        components["transcriber"] = _component("transcriber", system.transcriber, system.n_best)
    if system.encoder:
        components["encoder"] = _component("audio_text_encoder", system.encoder)
    if system.retriever:
        components["retriever"] = _component("retriever", system.retriever)
    settings: dict[str, Any] = {
        "n_best": system.n_best if many else 1,
        "n_best_fusion": "rrf" if many else "",
        "script_folding": "simplified" if language == "zh" and system.transcriber else "none",
        "depth": 100,
    }
    # Text is compared where there are transcripts.
    worded = bool(system.transcriber)
    return SystemInfo(
        kind=system.kind,
        name=system.name,
        components=components,
        settings=settings,
        normalizer="default" if worded else "",
        normalizer_version="1" if worded else "",
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
        unstated = {"name": "org/model", "normalizer": "", "normalizer_version": "", "settings": {}}
        update = {
            "origin": "imported",
            "data": data,
            "system": result.system.model_copy(update=unstated),
            "scores": scores,
            "by_group": {},
            "losses": {},
            "failures": {},
            "timing": Timing(),
            "environment": Environment(hardware="", threads=0, python="", packages={}),
        }
        records.append(RunRecord(result.model_copy(update=update), items_table([], SCHEMA)))
    return records


def _loss(own: Sequence[dict[str, Any]], base: Sequence[dict[str, Any]], metric: str, seed: int) -> Loss:
    lost = unweighted_loss({"": {r["id"]: r[metric] for r in own}}, {"": {r["id"]: r[metric] for r in base}}, seed=seed)
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
