"""Results of the recognition task made from seeded random numbers: clean, reverberant and noisy, with a front end."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from squtr.harness.results.envelope import (
    ACOUSTIC_COLUMNS,
    TRANSCRIPT_COLUMNS,
    DataInfo,
    Environment,
    Group,
    Isolated,
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
from squtr.harness.tasks.recognition.details import ChangePoint, KindRate, OtherRate, RecognitionDetails, Spread

from .report_runs_for_tests import tiny_clip

SCHEMA = item_schema(*ACOUSTIC_COLUMNS, *TRANSCRIPT_COLUMNS)
CONDITIONS = ("clean", "snr_5", "snr_0", "reverb")
EVIL = "large <b onclick=x>1</b>"
SYSTEMS: tuple[tuple[str, str, int], ...] = (("small", "", 39), ("small", "halver", 39), (EVIL, "", 244))
"""Transcriber, front end, parameters in thousands."""
EDGES = (0.4, 0.8)
N, RIRS = 12, 2


def recognition_records(*, partial: bool = False, conditions: tuple[str, ...] = CONDITIONS) -> list[RunRecord]:
    """One record for each system and condition; the reverberant rows have two RIRs for each utterance."""
    return [_record(*system, condition, partial=partial) for system in SYSTEMS for condition in conditions]


def write_recognition(folder: Path, **options: Any) -> list[RunRecord]:
    """The records below `folder`, with the clips of two rows and their RIR."""
    from squtr.harness.tasks.recognition.samples import RIR_FILE, SampleRir

    records = recognition_records(**options)
    for record in records:
        write_run(folder, record)
    for number in range(2):
        id_ = f"u{number:02d}@rir{number}"
        place = folder / "samples" / "speech" / id_.replace("@", "-")
        place.mkdir(parents=True)
        for name in ("clean", "reverb", "reverb.halver"):
            (place / f"{name}.flac").write_bytes(tiny_clip(number))
        rir = SampleRir(id_, "speech", f"rir{number}", 0.5 + number, -3.0, [0.0, -6.0, -30.0, -70.0], 0.05)
        (place / RIR_FILE).write_text(json.dumps(asdict(rir)), encoding="utf-8")
    return records


def _rows(transcriber: str, front_end: str, condition: str) -> list[dict[str, Any]]:
    rows = []
    draw = np.random.default_rng([len(transcriber), len(front_end), *map(ord, condition)])
    harm = {"clean": 0.05, "snr_5": 0.15, "snr_0": 0.3, "reverb": 0.4}[condition] * (0.6 if front_end else 1.0)
    for number in range(N):
        for rir in range(RIRS if condition == "reverb" else 1):
            utterance = f"u{number:02d}"
            words = "the quick brown fox jumps over the lazy dog today".split()
            kept = [word for word in words if draw.random() > harm]
            rt60 = 0.2 + 0.1 * number if condition == "reverb" else math.nan
            counts = {f"word_{kind}": 0.0 for kind in ("substitutions", "insertions")}
            counts |= {"word_deletions": float(len(words) - len(kept)), "word_reference_length": float(len(words))}
            rows.append(
                {
                    "id": f"{utterance}@rir{rir}" if condition == "reverb" else utterance,
                    "cluster": utterance,
                    "subset": "speech",
                    "language": "en",
                    "condition": condition,
                    "audio_sha256": "ab" * 32,
                    "error": "",
                    "flags": [],
                    **{name: math.nan if kind == pa.float64() else "" for name, kind in ACOUSTIC_COLUMNS},
                    "rir_id": f"rir{rir}" if condition == "reverb" else "",
                    "rt60_s": rt60,
                    "drr_db": 3.0 - number if condition == "reverb" else math.nan,
                    "noise_family": ("babble", "traffic")[number % 2] if condition.startswith("snr") else "",
                    "text": " ".join(words),
                    "transcript": " ".join(kept),
                    **counts,
                    **{name.replace("word", "char"): value * 4 for name, value in counts.items()},
                }
            )
    return rows


def _rate(rows: list[dict[str, Any]]) -> Score:
    length = sum(row["word_reference_length"] for row in rows)
    value = sum(row["word_deletions"] for row in rows) / length
    return Score(value=value, low=max(0.0, value - 0.03), high=value + 0.03, n=len(rows))


def _loss(value: float, n: int, *, p_value: float | None = 0.01, p_holm: float | None = None) -> Loss:
    absolute = Score(value=value, low=value - 0.02, high=value + 0.02, n=n)
    return Loss(absolute=absolute, relative=Score(value=value / 0.05, n=n), p_value=p_value, p_holm=p_holm)


def _losses(rows: list[dict[str, Any]], transcriber: str, front_end: str, condition: str, **p: Any) -> dict[str, Any]:
    own, found = _rate(rows).value or 0.0, {}
    if condition != "clean":
        clean = _rate(_rows(transcriber, front_end, "clean")).value or 0.0
        found["clean"] = {"wer": _loss(own - clean, len(rows), **p)}
    if front_end:
        without = _rate(_rows(transcriber, "", condition)).value or 0.0
        found["no-front-end"] = {"wer": _loss(own - without, len(rows), **p)}
    return found


def _groups(rows: list[dict[str, Any]], transcriber: str, front_end: str, condition: str) -> dict[str, list[Group]]:
    def group(label: str, low: float | None, high: float | None, own: list[dict[str, Any]]) -> Group:
        losses = _losses(own, transcriber, front_end, condition, p_holm=0.02)
        clusters = len({row["cluster"] for row in own})
        return Group(
            label=label, low=low, high=high, n=len(own), clusters=clusters, scores={"wer": _rate(own)}, losses=losses
        )

    def within(row: dict[str, Any], name: str, low: float | None, high: float | None) -> bool:
        return (low is None or row[name] > low) and (high is None or row[name] <= high)

    if condition.startswith("snr"):
        families = ("babble", "traffic")
        own = [group(f, None, None, [r for r in rows if r["noise_family"] == f]) for f in families]
        return {"noise_family": own}
    if condition != "reverb":
        return {}
    rt60 = [(f"{low}-{high}", low, high) for low, high in ((None, EDGES[0]), EDGES, (EDGES[1], None))]
    drr = [("low", None, -2.0), ("high", -2.0, None)]
    found = {
        name: [
            group(label, low, high, own)
            for label, low, high in bins
            if (own := [r for r in rows if within(r, name, low, high)])
        ]
        for name, bins in (("rt60_s", rt60), ("drr_db", drr))
    }
    found["rt60_s|drr_db"] = [
        group(f"{a}|{b}", None, None, own)
        for a, *first in rt60
        for b, *second in drr
        if (own := [r for r in rows if within(r, "rt60_s", *first) and within(r, "drr_db", *second)])
    ]
    return found


def _details(rows: list[dict[str, Any]], front_end: str, condition: str) -> RecognitionDetails:
    reverb = condition == "reverb"
    rate = _rate(rows)
    change = None if condition == "clean" else Score(value=0.1, low=0.05, high=0.15, n=len(rows))
    sigma = Score(value=0.08, low=0.05, high=0.11, n=len(rows))
    point = ChangePoint(
        method="hinge",
        threshold_s=0.45,
        low_s=0.3,
        high_s=0.6,
        slope_per_s=0.3,
        p_value=0.001,
        n=24,
        significant_from_s=0.4,
    )
    return RecognitionDetails(
        kinds={"word": {kind: KindRate(rate=rate, change=change) for kind in ("substitutions", "deletions")}},
        other_normalizers={"raw": {"wer": OtherRate(rate=rate, loss=None if condition == "clean" else _loss(0.2, 12))}},
        spread=Spread(within_utterances=sigma, between_rirs=sigma, rir_component=sigma) if reverb else None,
        change_point=point if reverb else None,
        front_end_cost=0.02 if front_end else None,
        loss_change={"wer": _loss(-0.1, 12)} if front_end and condition != "clean" else {},
    )


def _record(transcriber: str, front_end: str, size: int, condition: str, *, partial: bool) -> RunRecord:
    rows = _rows(transcriber, front_end, condition)
    spec = {"kind": "transcriber", "backend": "test", "model": transcriber, "name": transcriber, "settings": {}}
    components: dict[str, Any] = {"transcriber": spec}
    if front_end:
        components["front_end"] = {**spec, "kind": "front_end", "model": front_end, "name": front_end}
    n = len(rows)
    result = Result(
        task="recognition",
        task_version="1",
        benchmark="recognition",
        benchmark_version="1",
        metrics_version="1",
        squtr_version="0.1.0",
        data=DataInfo(
            source="recorded",
            source_version="1",
            revision="abc",
            license="CC-BY-4.0",
            config=f"en_{condition}",
            language="en",
            condition=condition,
            subsets=["speech"],
            n=n,
            n_total=2 * n if partial else n,
            clusters=N,
            partial=partial,
            audio_s=3.0 * n,
            edges={"rt60_s": list(EDGES)} if condition == "reverb" else {},
            manifest_sha256="0123456789abcdef" * 4,
            recipe={"rirs": [{"name": "embedded", "version": "1", "subsets": []}]},
        ),
        system=SystemInfo(
            kind="transcriber",
            name=f"{front_end} | {transcriber}" if front_end else transcriber,
            components=components,
            parameters=1000 * size,
            normalizer="default",
            normalizer_version="1",
        ),
        main_metric="wer",
        scores={"wer": _rate(rows), "wer_macro": _rate(rows)},
        by_group=_groups(rows, transcriber, front_end, condition),
        losses=_losses(rows, transcriber, front_end, condition),
        failures={
            "failed": 0,
            "loop": int(condition == "snr_0"),
            "truncated": 0,
            "empty": 0,
            "hallucination": 0,
            "invalid_text": 0,
        },
        details=_details(rows, front_end, condition).model_dump(mode="json"),
        timing=Timing(
            stages={"transcribe": 0.03 * n * size / 39},
            audio_s=3.0 * n,
            rtfx=100.0 * 39 / size / (2 if front_end else 1),
            latency=Latency(n=5, p50_s=0.1, p90_s=0.2, p95_s=0.3, p99_s=0.4),
            isolated=Isolated(load_s=1.0, peak_memory_mb=900.0, peak_gpu_memory_mb=None, device="cpu"),
        ),
        environment=Environment(hardware="2 cores", threads=2, python="3.11", packages={}),
        seed=0,
        resamples=1000,
    )
    return RunRecord(result, items_table(rows, SCHEMA))
