"""Small BEIR folders, Hub-like parquet folders, recordings and releases, made by the tests."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile

from .collections_for_tests import speech_like, write_jsonl

VARIANTS = {"clean": None, "noise_snr_20": 20, "noise_snr_10": 10, "noise_snr_0": 0}


def make_beir(root: Path) -> Path:
    """Four documents; q1 and q2 are judged in test, q3 in dev, q4 nowhere."""
    (root / "qrels").mkdir(parents=True)
    write_jsonl(root / "corpus.jsonl", [{"_id": f"d{i}", "title": f"t{i}", "text": f"text {i}"} for i in range(4)])
    write_jsonl(root / "queries.jsonl", [{"_id": f"q{i}", "text": f"What is {i}?"} for i in (3, 2, 1, 4)])
    header = "query-id\tcorpus-id\tscore\n"
    (root / "qrels/test.tsv").write_text(f"{header}q1\td1\t1\nq2\td2\t2\nq1\td0\t0\n")
    (root / "qrels/dev.tsv").write_text(f"{header}q3\td3\t1\n")
    return root


def make_mteb(
    root: Path, *, ids: tuple[str, str, str] = ("_id", "query-id", "corpus-id"), qrels_config: str = "default"
) -> Path:
    """The same texts as parquet, in the configs of the Hub's mteb organization, with float grades and null titles."""
    id_, query, document = ids
    tables = {
        "corpus": {id_: [f"d{i}" for i in range(4)], "title": [None, "t1", None, ""], "text": list("abcd")},
        "queries": {id_: ["q3", "q2", "q1"], "text": ["What is 3?", "What is 2?", "What is 1?"]},
        "qrels": {query: ["q1", "q2"], document: ["d1", "d2"], "score": [1.0, 2.0]},
    }
    lines = ["---", "configs:"]
    for name, columns in tables.items():
        split = "test" if name == "qrels" else name
        (root / name).mkdir(parents=True)
        pq.write_table(pa.table(columns), root / name / f"{split}-00000-of-00001.parquet")
        config = qrels_config if name == "qrels" else name
        lines += [f"- config_name: {config}", "  data_files:", f"  - split: {split}", f"    path: {name}/*.parquet"]
    (root / "README.md").write_text("\n".join([*lines, "---", ""]))
    return root


def make_recordings(root: Path, rows: list[dict[str, object]]) -> Path:
    """A folder with manifest.jsonl and a recording per row."""
    root.mkdir(parents=True)
    for seed, row in enumerate(rows):
        path = root / str(row["file"])
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, speech_like(seed, 0.5, 16_000), 16_000)
    write_jsonl(root / "manifest.jsonl", rows)
    return root


def make_release(root: Path) -> Path:
    """A release with the defects of the real one: en/fiqa and zh/DuRetrieval, three queries each.

    fiqa: grades as text, an empty document, the text of q1 differs at 0 dB. DuRetrieval: grades as numbers, metadata
    beside the audio.
    """
    for language, folder, texts in (
        ("en", "fiqa", ["What is debt?", "Why save?", "Is tax fair?"]),
        ("zh", "DuRetrieval", ["什么是债务", "为什么储蓄", "税公平吗"]),
    ):
        base = root / "source_data" / language / folder
        (base / "qrels").mkdir(parents=True)
        english = language == "en"
        documents = [{"_id": f"d{i}", "title": "", "text": texts[i % 3]} for i in range(5)]
        if english:
            documents[4]["text"] = ""
        write_jsonl(base / "corpus.jsonl", documents)
        write_jsonl(base / "queries.jsonl", [{"_id": f"q{i}", "text": text} for i, text in enumerate(texts)])
        grade = "1" if english else 1
        write_jsonl(
            base / "qrels/test.jsonl", [{"query-id": f"q{i}", "corpus-id": f"d{i}", "score": grade} for i in range(3)]
        )
        for variant, level in VARIANTS.items():
            (base / f"audio_{variant}").mkdir()
            rows = []
            for i, text in enumerate(texts):
                name = f"q{i}.wav" if level is None else f"noise_snr{level}_q{i}.wav"
                clip = speech_like(i, 0.3) + (0 if level is None else 0.01 * speech_like(level, 0.3))
                pcm = np.rint(clip * 32767).astype(np.int16)
                soundfile.write(base / f"audio_{variant}" / name, pcm, 24_000, subtype="PCM_16")
                row = {"_id": f"q{i}", "text": text, "audio": name}
                if level is not None:
                    row |= {"snr_db": level, "noise_id": f"demand_SCAFE_ch{i + 1:02d}" if i < 2 else "babble"}
                if english and level == 0 and i == 1:
                    row["text"] = "Why, save?"
                rows.append(row)
            place = base if english else base / f"audio_{variant}"
            write_jsonl(place / f"queries_with_audio_{variant}.jsonl", rows)
    return root


def zip_folder(root: Path, path: Path, prefix: str = "") -> Path:
    """The files below `root` as a zip."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(p for p in root.rglob("*") if p.is_file()):
            archive.write(file, prefix + file.relative_to(root).as_posix())
    return path
