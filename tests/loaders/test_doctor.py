"""The doctor: a built folder is whole; every kind of damage is found and named."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
import yaml
from huggingface_hub import DatasetCard
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, UsageError
from squtr.harness.cli import main
from squtr.loaders.audio import decode_audio, encode_flac
from squtr.loaders.build import build
from squtr.loaders.doctor import examine
from squtr.loaders.hub.evaluation_file import task_name
from squtr.loaders.licenses import ORDER, OTHER, merge_licenses
from squtr.loaders.manifest import MANIFEST_NAME, file_sha256
from squtr.loaders.mixing import level_noise, level_speech, mix
from squtr.loaders.recipe import open_recipe
from squtr.loaders.remeasure import measure_snr

from .collections_for_tests import make_collection, speech_like

CONDITIONS = ["clean", "snr_-10", "high_noise", "snr_40", "reverb", "reverb_medium_noise"]
HIGH = "queries/en/tiny-en/high_noise/test-00000-of-00001.parquet"
CLEAN = "queries/en/tiny-en/clean/test-00000-of-00001.parquet"
QRELS = "qrels/tiny-zh/test-00000-of-00001.parquet"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_collection(tmp_path_factory.mktemp("doctor") / "tiny")


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("doctored") / "data"
    build(open_recipe(str(root), conditions=CONDITIONS), out)
    return out


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "data"))


def rewrite(folder: Path, path: str, change: Callable[[list[dict[str, Any]]], Any], **options: Any) -> None:
    """Change the rows of a shard and make the manifest agree, as a faulty builder would have written them."""
    table = pq.read_table(folder / path, partitioning=None)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=options.pop("schema", table.schema)), folder / path, **options)
    manifest = json.loads((folder / MANIFEST_NAME).read_text(encoding="utf-8"))
    for shard in manifest["shards"]:
        if shard["path"] == path:
            written = folder / path
            shard |= {"sha256": file_sha256(written), "bytes": written.stat().st_size, "rows": len(rows)}
    (folder / MANIFEST_NAME).write_text(json.dumps(manifest), encoding="utf-8")


def kinds(folder: Path, sample: int = 5) -> set[str]:
    return {finding.kind for finding in examine(folder, sample=sample).findings}


@pytest.mark.parametrize("level", ["whole", "active"])
def test_a_build_is_whole(root: Path, built: Path, tmp_path: Path, level: str) -> None:
    out = built
    if level == "active":
        out = tmp_path / "data"
        build(open_recipe(str(root), conditions=CONDITIONS, level=level), out)
    seen: list[tuple[str, int, int]] = []
    diagnosis = examine(out, sample=100, progress=lambda *step: seen.append(step))
    assert diagnosis.healthy, diagnosis.findings
    assert diagnosis.clips == diagnosis.decoded == 2 * 5 * len(CONDITIONS)
    assert (diagnosis.measured, diagnosis.unmeasured) == (2 * 5 * 4, 0)
    assert 0 < diagnosis.largest_error_db < 0.02
    assert {stage for stage, done, total in seen if done == total} == {"reading files", "checking subsets"}


def test_levels_without_their_partner_are_counted(root: Path, tmp_path: Path) -> None:
    build(open_recipe(str(root), conditions=["high_noise"], languages=["en"]), tmp_path / "data")
    diagnosis = examine(tmp_path / "data", sample=2)
    assert diagnosis.healthy
    assert (diagnosis.measured, diagnosis.unmeasured) == (0, 2)
    assert np.isnan(diagnosis.largest_error_db)


def test_files(folder: Path) -> None:
    (folder / HIGH).write_bytes((folder / HIGH).read_bytes()[:-10])
    changed = bytearray((folder / CLEAN).read_bytes())
    changed[len(changed) // 2] ^= 1
    (folder / CLEAN).write_bytes(changed)
    (folder / QRELS).unlink()
    (folder / "eval.yaml").unlink()
    extra = folder / "queries/en/tiny-en/clean/test-00001-of-00002.parquet"
    extra.write_bytes(b"from another build")
    found = {(finding.kind, finding.path) for finding in examine(folder, sample=1).findings}
    assert found == {
        ("truncated", HIGH),
        ("changed", CLEAN),
        ("missing", QRELS),
        ("missing", "eval.yaml"),
        ("extra", extra.relative_to(folder).as_posix()),
    }


def test_a_manifest_cannot_point_outside(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.parquet").write_bytes(b"secret")
    manifest = json.loads((folder / MANIFEST_NAME).read_text(encoding="utf-8"))
    manifest["shards"].append({"path": "qrels/../../secret.parquet", "sha256": "", "bytes": 6, "rows": 0})
    (folder / MANIFEST_NAME).write_text(json.dumps(manifest), encoding="utf-8")
    assert [f.path for f in examine(folder, sample=0).findings] == ["qrels/../../secret.parquet"]


def swap(rows: list[dict[str, Any]]) -> None:
    rows[0], rows[1] = rows[1], rows[0]


def louder_noise(rows: list[dict[str, Any]]) -> None:
    samples, _ = decode_audio(rows[2]["audio"]["bytes"], "q2")
    noise = np.random.default_rng(0).normal(scale=0.05, size=samples.size).astype(np.float32)
    rows[2]["audio"]["bytes"] = encode_flac(np.clip(samples + noise, -0.9, 0.9), "q2")


def cut(rows: list[dict[str, Any]]) -> None:
    samples, _ = decode_audio(rows[0]["audio"]["bytes"], "q0")
    rows[0]["audio"]["bytes"] = encode_flac(samples[:-240], "q0")


def silence(rows: list[dict[str, Any]]) -> None:
    rows[1]["audio"]["bytes"] = encode_flac(np.zeros(24_000, dtype=np.float32), "q1")


def wav(samples: np.ndarray) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, 24_000, format="WAV", subtype="FLOAT")
    return file.getvalue()


@pytest.mark.parametrize(
    ("path", "change", "expected"),
    [
        (HIGH, swap, {"pairing"}),
        (HIGH, lambda rows: rows.pop(), {"pairing"}),
        (HIGH, lambda rows: rows[1].update(id="q0"), {"pairing", "ids"}),
        (HIGH, lambda rows: rows[1].update(text="something else"), {"pairing"}),
        (HIGH, lambda rows: rows[1].update(noise_offset_s=0.5), {"pairing"}),
        (HIGH, lambda rows: rows[1].update(noise_id=""), {"pairing", "value"}),
        (HIGH, lambda rows: rows[1].update(snr_db=3.0), {"value"}),
        (HIGH, lambda rows: rows[1].update(duration_s=float("nan")), {"value", "pairing", "audio"}),
        (HIGH, lambda rows: rows[1].update(condition="clean"), {"value"}),
        (HIGH, lambda rows: rows[1].update(voice=None), {"null"}),
        (HIGH, lambda rows: rows[1]["audio"].update(bytes=None), {"null"}),
        (HIGH, lambda rows: rows[1]["audio"].update(bytes=b"no sound"), {"audio"}),
        (HIGH, louder_noise, {"snr"}),
        (HIGH, cut, {"audio"}),
        (CLEAN, silence, {"audio"}),
        (CLEAN, lambda rows: rows[1]["audio"].update(bytes=b""), {"audio"}),
        (CLEAN, lambda rows: rows[1]["audio"].update(bytes=rows[1]["audio"]["bytes"][:-200]), {"audio"}),
        (CLEAN, lambda rows: rows[1]["audio"].update(bytes=wav(np.zeros(0))), {"audio"}),
        (CLEAN, lambda rows: rows[1]["audio"].update(bytes=wav(np.full(24_000, np.nan))), {"audio"}),
        (CLEAN, lambda rows: rows[0].update(rir_id="hall"), {"value", "pairing"}),
        (QRELS, lambda rows: rows[0].update({"query-id": "q99"}), {"qrels"}),
        (QRELS, lambda rows: rows[0].update({"corpus-id": "d99"}), {"qrels"}),
        (QRELS, lambda rows: rows.append(dict(rows[0])), {"qrels"}),
        (QRELS, lambda rows: rows[0].update(score=-1), {"qrels"}),
        (QRELS.replace("qrels", "corpus"), lambda rows: rows[1].update(id="d0"), {"ids", "qrels"}),
        (QRELS.replace("qrels", "corpus"), lambda rows: rows[11].update(id=""), {"ids"}),
    ],
)  # fmt: skip
def test_tables_and_sound(folder: Path, path: str, change: Callable[[Any], Any], expected: set[str]) -> None:
    rewrite(folder, path, change)
    assert kinds(folder) == expected


@pytest.mark.parametrize("column", ["voice", "audio"])
def test_nulls_without_statistics(folder: Path, column: str) -> None:
    def empty(rows: list[dict[str, Any]]) -> None:
        if column == "audio":
            rows[1]["audio"]["bytes"] = None
        else:
            rows[1][column] = None

    rewrite(folder, HIGH, empty, write_statistics=False)
    (finding,) = examine(folder, sample=1).findings
    assert finding.message == f"{HIGH}: 1 cells of the column {column} are empty"


def test_every_clip(built: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sample of none finds nothing where the hash of a damaged file was taken over."""
    assert main(["doctor", str(built), "--sample", "0", "--all"]) == 0
    assert "60 clips, 60 of them decoded" in capsys.readouterr().out

    def flip(rows: list[dict[str, Any]]) -> None:
        content = bytearray(rows[4]["audio"]["bytes"])
        content[len(content) // 2] ^= 1
        rows[4]["audio"]["bytes"] = bytes(content)

    def other(rows: list[dict[str, Any]]) -> None:
        buffer = io.BytesIO()
        soundfile.write(buffer, np.ones((100, 1), "int16"), 24_000, format="FLAC", subtype="PCM_16")
        # The MD5 of other samples.
        content = buffer.getvalue()
        rows[1]["audio"]["bytes"] = content[:26] + bytes([content[26] ^ 1]) + content[27:]

    for path, change, words in (
        (HIGH, flip, "'q4' cannot be read as audio"),
        (CLEAN, other, "'q1' does not decode to the samples that were encoded"),
    ):
        rewrite(folder, path, change, row_group_size=32)
        findings = [f for f in examine(folder, sample=0, everything=True).findings if f.path == path]
        assert [(f.kind, f.id) for f in findings] == [("audio", words[1:3])]
        assert words in findings[0].message


def test_form_of_a_table(folder: Path) -> None:
    rewrite(folder, QRELS, lambda rows: None, schema=pa.schema({"query-id": pa.string(), "corpus-id": pa.string()}))
    (finding,) = examine(folder, sample=0).findings
    assert finding.kind == "columns"
    assert "score: int64" in finding.message


def test_row_groups(root: Path, tmp_path: Path) -> None:
    make_collection(tmp_path / "many", queries=101, documents=101)
    build(open_recipe(str(tmp_path / "many"), conditions=["clean"], languages=["en"]), tmp_path / "data")
    assert examine(tmp_path / "data", sample=3).healthy
    rewrite(tmp_path / "data", CLEAN, lambda rows: None)
    (finding,) = examine(tmp_path / "data", sample=0).findings
    assert "row group of 101 rows" in finding.message


def test_the_command(built: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(built), "--sample", "1"]) == 0
    assert "is whole: 16 files" in capsys.readouterr().out
    (folder / HIGH).unlink()
    assert main(["doctor", str(folder)]) == 1
    assert f"missing    {HIGH} is missing." in capsys.readouterr().out
    assert main(["doctor", str(folder), "--json", "--sample", "0"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["healthy"] is False
    assert told["findings"][0]["path"] == HIGH
    assert told["largest_error_db"] is None


def test_what_cannot_be_examined(tmp_path: Path, capsys: pytest.CaptureFixture[str], built: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        examine(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="-1"):
        examine(built, sample=-1)
    assert main(["doctor", str(tmp_path)]) == 1
    assert "manifest.json is missing" in capsys.readouterr().err


@given(
    seed=st.integers(0, 1000),
    snr_db=st.floats(-30, 45),
    level=st.sampled_from(["whole", "active"]),
    peak=st.floats(0.05, 0.9),
)
def test_measuring_again(seed: int, snr_db: float, level: Any, peak: float) -> None:
    """What mixing applies is found again from the stored clips, within the stated tolerance."""
    speech = level_speech(speech_like(seed, 0.5) * np.float32(2 * peak))
    noise = level_noise(np.random.default_rng(seed + 1).normal(size=12_000).astype(np.float32), speech)
    mixed = mix(speech, noise, snr_db, level=level)
    noisy, quiet = (decode_audio(encode_flac(s, "x"), "x")[0] for s in (mixed.samples, speech.samples))
    measured = measure_snr(noisy, mixed.gain_db, quiet, 0.0, level)
    assert abs(measured.snr_db - snr_db) <= measured.tolerance_db
    if snr_db <= 20 and peak > 0.2 and mixed.gain_db > -20:
        assert measured.tolerance_db < 0.06


def test_noise_below_16_bits_is_not_measured() -> None:
    speech = speech_like(1, 0.5)
    assert np.isnan(measure_snr(speech, 0.0, speech, 0.0, "whole").snr_db)


def test_the_card_and_the_evaluation_file(built: Path) -> None:
    data = DatasetCard.load(built / "README.md").data.to_dict()
    assert data["license"] == "cc0-1.0"
    assert data["language"] == ["en", "zh"]
    assert data["size_categories"] == ["n<1K"]
    patterns = {c["config_name"]: c["data_files"][0]["path"] for c in data["configs"]}
    assert patterns["zh_high_noise"] == ["queries/zh/tiny-zh/high_noise/test-*.parquet"]
    evaluation = yaml.safe_load((built / "eval.yaml").read_text(encoding="utf-8"))
    assert evaluation["evaluation_framework"] == "mteb"
    assert set(evaluation) == {"name", "description", "evaluation_framework", "tasks"}
    tasks = {task["id"]: task for task in evaluation["tasks"]}
    assert len(tasks) == len(evaluation["tasks"]) == 2 * (1 + len(CONDITIONS))
    noisy = tasks["SQuTRTinyEn_tiny-en_high_noise_test"]
    assert noisy["split"] == "test"
    assert {task["config"] for task in tasks.values() if "config" in task} <= set(patterns)


def test_task_names_are_those_of_the_benchmark() -> None:
    names = ["fiqa", "hotpotqa", "nq", "medicalretrieval", "duretrieval", "t2retrieval"]
    assert task_name("fiqa") == "SQuTRFiQA"
    assert len({task_name(name) for name in names}) == 6


@given(st.lists(st.sampled_from(ORDER), min_size=1))
def test_the_merged_license_is_one_of_the_parts_or_other(parts: list[str]) -> None:
    merged = merge_licenses(part.upper() for part in parts)
    assert merged == merge_licenses(reversed(parts))
    assert merged in {*parts, OTHER}
    if merged != OTHER:
        assert all(ORDER.index(part) <= ORDER.index(merged) for part in parts)


@pytest.mark.parametrize(
    ("statements", "merged"),
    [
        ([], OTHER),
        (["unknown"], OTHER),
        ([""], OTHER),
        (["MIT and CC-BY-4.0; Apache-2.0"], "cc-by-4.0"),
        (["CC-BY-NC-SA-4.0", "CC-BY-SA-4.0"], OTHER),
        (["CC-BY-SA-3.0", "CC-BY-4.0", "CC-BY-SA-4.0"], "cc-by-sa-4.0"),
        (["CC-BY-NC-4.0", "CC-BY-NC-SA-3.0"], "cc-by-nc-sa-3.0"),
        (["MIT OR GPL-3.0-only"], OTHER),
    ],
)
def test_licenses(statements: list[str], merged: str) -> None:
    assert merge_licenses(statements) == merged
