"""Boards of any size, made of entries with drawn numbers: what the page has to show, without evaluating anything."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from squtr.harness.metrics.registry import parse_metric
from squtr.harness.results.envelope import Loss, Score
from squtr.harness.tasks.retrieval.columns import items_schema
from squtr.leaderboard.entry import Coverage, Entry, Model, content_sha256

LANGUAGES = {"en": ("fiqa", "nq"), "zh": ("duretrieval",)}
CONDITIONS = ("text", "clean", "low_noise", "medium_noise", "high_noise", "reverb")
TRANSCRIBERS = ("whisper-tiny", "whisper-base", "whisper-small", "paraformer", "sensevoice", "qwen3-asr")
RETRIEVERS = ("BM25", "bge-m3", "e5-large", "qwen3-embedding-0.6b")
ITEM_SCHEMA = items_schema(parse_metric(name) for name in ("ndcg_at_10", "mrr_at_10", "recall_at_10"))
ERRATUM = "The table says 0.5, the text 0.4."
NO_ERRORS = {"word_substitutions": 0.0, "word_deletions": 0.0, "word_insertions": 0.0}
HOSTILE = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "</script><script>document.title='owned'</script>",
    "=HYPERLINK(\"https://evil.example\")",
    "right\u202eleft",
)  # fmt: skip


def score(value: float, n: int = 500) -> Score:
    return Score(value=value, low=value - 0.02, high=value + 0.02, n=n)


def make_entry(name: str = "whisper-base + BM25", *, seed: int = 0, **changes: Any) -> Entry:
    """An entry on all places, its numbers drawn with `seed`. `changes` replace fields."""
    draw = random.Random(f"{name} {seed}")
    transcriber, _, retriever = name.partition(" + ")
    quality, robust = draw.uniform(0.35, 0.6), draw.uniform(0.02, 0.08)
    fields: dict[str, dict[str, Any]] = {
        key: {} for key in ("scores", "coverage", "by_subset", "losses", "failures", "timing", "normalizers", "hashes",
                            "sources", "hardware", "who_by_config")
    }  # fmt: skip
    who = changes.get("who", "self-reported")
    for language, subsets in LANGUAGES.items():
        for step, condition in enumerate(CONDITIONS):
            config = f"{language}_{condition}"
            value, wer = quality - robust * max(0, step - 1), 0.04 + robust * step
            scores = {
                "ndcg_at_10": score(value), "mrr_at_10": score(value * 1.1), "recall_at_10": score(value * 1.2),
            }  # fmt: skip
            if condition != "text":
                scores |= {"wer": score(wer), "cer": score(wer / 2)}
            fields["scores"][config] = scores
            fields["by_subset"][config] = {
                subset: {metric: score(own.value or 0.0, 250) for metric, own in scores.items()} for subset in subsets
            }
            fields["coverage"][config] = Coverage(500, 500, False, language, condition, subsets)
            if step > 1:
                lost = Loss(absolute=score(robust * (step - 1)), relative=score(robust * (step - 1) / quality))
                fields["losses"][config] = {
                    base: {m: lost for m in scores if base == "clean" or m.endswith("10")} for base in ("clean", "text")
                }
            fields["failures"][config] = {"loop": step, "truncated": 0, "empty": 1, "missing": 0}
            fields["timing"][config] = {"rtfx": round(draw.uniform(5, 200), 2), "peak_memory_mb": 1500.0 + step}
            fields["normalizers"][config] = "default 3" if condition != "text" else ""
            fields["hashes"][config] = content_sha256([name, config])
            fields["sources"][config] = f"results/squtr/x/20260101T000000Z-{fields['hashes'][config][:16]}.json"
            fields["hardware"][config] = "AMD EPYC, 2 threads"
            fields["who_by_config"][config] = who
    known: dict[str, Any] = {
        "id": content_sha256([name, seed])[:16],
        "task": "retrieval",
        "benchmark": "squtr",
        "benchmark_version": "1",
        "system": name,
        "kind": "cascade",
        "main_metric": "ndcg_at_10",
        "who": who,
        "aspects": {"source": "mini", "source version": "2"},
        "components": {
            "transcriber": {"name": transcriber, "model": f"org/{transcriber}", "options": {"beam_size": 5}},
            "retriever": {"name": retriever, "k1": 0.9},
        },
        "models": (
            Model("transcriber", transcriber, "abc", "https://huggingface.co/org/model", 74_000_000, True),
            Model("retriever", retriever, "", "", draw.choice([None, 560_000_000]), draw.choice([True, None])),
        ),
        "settings": {"normalizer": "default", "depth": 100, "n_best": 1},
        "source": "mini",
        "source_version": "2",
        "revision": "0123456789abcdef",
        "squtr_version": "0.1.0",
        "date": f"2026-01-{draw.randint(1, 28):02d}T10:00:00Z",
        **fields,
    }
    return Entry(**(known | changes))


def make_board(systems: int = 24) -> list[Entry]:
    """`systems` ranked entries, and one each of what is special: partial, outside, published, of another version."""
    pairs = [f"{transcriber} + {retriever}" for transcriber in TRANSCRIBERS for retriever in RETRIEVERS]
    entries = [
        make_entry(pairs[at % len(pairs)] + (f" v{at // len(pairs)}" if at >= len(pairs) else ""), seed=at)
        for at in range(systems)
    ]
    part = {
        config: Coverage(50, 500, True, covered.language, covered.condition, covered.subsets)
        for config, covered in entries[0].coverage.items()
    }
    return [
        *entries,
        make_entry("in part + BM25", coverage=part),
        make_entry("contradictory + BM25", ranked=False, notes=("Two papers give two numbers.",)),
        make_entry("whisper-large-v3 + BM25", who="published", errata={"en_clean/ndcg_at_10": ERRATUM}),
        make_entry("older + BM25", benchmark_version="0"),
    ]  # fmt: skip


def make_records(entries: Sequence[Entry], queries: int = 40) -> dict[tuple[str, str], pa.Table]:
    """Per-query tables of the entries' configs, drawn around their scores."""
    found = {}
    for entry in entries:
        for config, covered in entry.coverage.items():
            draw = random.Random(f"{entry.id} {config}")
            mean = entry.scores[config]["ndcg_at_10"].value or 0.0
            rows = []
            for subset in covered.subsets:
                for at in range(queries):
                    value = min(1.0, max(0.0, draw.gauss(mean, 0.2)))
                    row: dict[str, Any] = {field.name: _blank(field.type) for field in ITEM_SCHEMA}
                    row |= {
                        "id": f"q{at}", "cluster": f"q{at}", "subset": subset,
                        "language": covered.language, "condition": covered.condition,
                        "ndcg_at_10": value, "mrr_at_10": value, "recall_at_10": value,
                    }  # fmt: skip
                    if covered.condition != "text":
                        row |= {
                            **NO_ERRORS,
                            "word_substitutions": float(draw.randint(0, 3)),
                            "word_reference_length": 10.0,
                        }
                    rows.append(row)
            found[entry.id, config] = pa.Table.from_pylist(rows, schema=ITEM_SCHEMA)
    return found


def _blank(kind: pa.DataType) -> Any:
    if pa.types.is_string(kind):
        return ""
    if pa.types.is_list(kind):
        return []
    if pa.types.is_boolean(kind):
        return False
    return float("nan") if pa.types.is_floating(kind) else 0
