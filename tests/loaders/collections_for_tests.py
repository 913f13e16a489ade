"""Small collection folders with their own speech, made by the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

LANGUAGES = ("en", "zh")


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def speech_like(seed: int, seconds: float, rate: int = 24_000) -> np.ndarray:
    """Noise with a syllable-like envelope and silence at both ends, peak 0.5."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    sound = rng.normal(size=t.size) * (0.2 + np.sin(2 * np.pi * 4 * t) ** 2)
    edge = int(0.1 * rate)
    sound[:edge] = sound[-edge:] = 0
    return (0.5 * sound / np.abs(sound).max()).astype(np.float32)


def make_collection(root: Path, *, queries: int = 5, documents: int = 12) -> Path:
    """A collection with two languages; the query i is answered by the document i."""
    root.mkdir(parents=True, exist_ok=True)
    about = {"name": "tiny", "license": "CC0-1.0", "subsets": {f"tiny-{lang}": lang for lang in LANGUAGES}}
    (root / "about.json").write_text(json.dumps(about), encoding="utf-8")
    words = {"en": "river stone lamp garden bridge winter copper violin harbour meadow falcon engine".split(),
             "zh": "河流 石头 台灯 花园 大桥 冬天 红铜 提琴 港口 草地 猎鹰 引擎".split()}  # fmt: skip
    for lang in LANGUAGES:
        names = words[lang]
        write_jsonl(
            root / f"corpus.{lang}.jsonl",
            [{"_id": f"d{i}", "title": names[i % 12], "text": f"{names[i % 12]} {names[(i + 1) % 12]}"}
             for i in range(documents)],
        )  # fmt: skip
        write_jsonl(
            root / f"queries.{lang}.jsonl",
            [{"_id": f"q{i}", "text": names[i % 12], "domain": "ab"[i % 2]} for i in range(queries)],
        )
        write_jsonl(
            root / f"qrels.{lang}.jsonl",
            [{"query-id": f"q{i}", "corpus-id": f"d{i}", "score": 2} for i in range(queries)],
        )
        rows = []
        (root / "speech" / lang).mkdir(parents=True, exist_ok=True)
        for i in range(queries):
            name = f"{lang}/q{i}.flac"
            soundfile.write(
                root / "speech" / name, speech_like(i + len(lang) * ord(lang[0]), 0.8 + 0.1 * (i % 8)), 24_000
            )
            rows.append({"_id": f"q{i}", "file": name, "voice": f"v{i % 2}", "speaker": "s", "tts_error_rate": 0.0})
        write_jsonl(root / f"speech.{lang}.jsonl", rows)
    return root
