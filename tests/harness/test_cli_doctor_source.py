"""`squtr doctor SOURCE`: what is wrong or odd about a source, before anything is built."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from squtr.errors import DataError, UsageError
from squtr.harness.cli import main
from squtr.harness.data import open_data

from ..loaders.collections_for_tests import make_collection
from ..loaders.sources_for_tests import make_beir, make_recordings


def test_what_is_odd_is_remarked_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_beir(tmp_path / "m")
    with (root / "corpus.jsonl").open("a") as file:
        file.write('{"_id": "d8", "title": "t1", "text": "text 1"}\n{"_id": "d9", "title": "", "text": ""}\n')
    with (root / "queries.jsonl").open("a") as file:
        file.write('{"_id": "q8", "text": "what is 1?"}\n{"_id": "q9", "text": "<|en|> hello \\ud83d"}\n')
    with (root / "qrels/test.tsv").open("a") as file:
        file.write("q8\td3\t1\nq9\td3\t1\n")
    voices = make_recordings(tmp_path / "v", [{"_id": f"q{i}", "file": f"{i}.wav"} for i in (1, 2, 8, 9)])
    (voices / "8.wav").write_bytes((voices / "1.wav").read_bytes())
    samples, rate = soundfile.read(voices / "9.wav")
    soundfile.write(voices / "9.wav", 0.001 * samples / np.abs(samples).max(), rate, subtype="FLOAT")
    name = f"beir:{root}?language=en&speech={voices}"
    assert main(["doctor", name, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    remarks = {remark["reason"]: remark["examples"] for remark in found["remarks"]}
    assert remarks == {
        "queries with the text of another query": ["q8"],
        "queries with a tag that nobody says, as <|en|> or [BLANK_AUDIO]": ["q9"],
        "queries with a character that was lost (U+FFFD)": ["q9"],
        "documents with neither title nor text": ["d9"],
        "documents with the text of a relevant one that are not judged relevant themselves": ["d8"],
        "queries with the audio of another query": ["q8"],
        "clips near silence (below -55 dBFS)": ["q9"],
    }
    assert found["left_out"][0]["count"] == 2
    assert (found["queries"], found["documents"], found["clips"], found["split"]) == (4, 6, 4, "test")
    assert main(["doctor", name]) == 0
    assert "can be built: 4 queries, 6 documents, 4 clips decoded." in capsys.readouterr().out


def test_what_is_wrong_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_collection(tmp_path / "tiny")
    (root / "speech/en/q2.flac").write_bytes(b"no audio")
    assert main(["doctor", str(root)]) == 1
    assert "of query 'q2' cannot be read" in capsys.readouterr().out
    with (root / "qrels.en.jsonl").open("a") as file:
        file.write('{"query-id": "q0", "corpus-id": "d99", "score": -1}\n' * 2)
    assert main(["doctor", str(root)]) == 1
    told = capsys.readouterr().out
    assert told.count("a grade below 0") == 2
    assert "2 errors. Mend them, or leave them out with --on-bad skip." in told


def test_a_folder_that_was_built_is_none_whatever_it_is_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_collection(tmp_path / "tiny")
    monkeypatch.chdir(tmp_path)
    assert main(["build", "--source", str(root), "--conditions", "clean", "--limit", "2", "--out", "mini"]) == 0
    capsys.readouterr()
    assert main(["doctor", "mini"]) == 0
    assert "mini is whole" in capsys.readouterr().out
    assert main(["doctor", "mini", "--on-bad", "skip"]) == 2
    assert "--on-bad is of sources" in capsys.readouterr().err
    assert main(["doctor", f"{root}?channel=0", "--sample", "2"]) == 2
    assert "a source is decoded whole" in capsys.readouterr().err


def test_bad_rows_and_recordings_that_would_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_collection(tmp_path / "tiny")
    (root / "speech/en/q2.flac").write_bytes(b"no audio")
    with (root / "qrels.en.jsonl").open("a") as file:
        file.write('{"query-id": "q0", "corpus-id": "d3", "score": -1}\n')
    assert main(["doctor", str(root), "--on-bad", "skip", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {entry["reason"]: entry["examples"] for entry in found["left_out"]} == {
        "judgments with a negative grade": ["q0 d3"],
        "queries with a recording that cannot be used": ["q2"],
    }
    assert (found["queries"], found["clips"]) == (9, 9)


def test_texts_alone_and_queries_without_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"beir:{make_beir(tmp_path / 'm')}?language=en"
    assert main(["doctor", name]) == 0
    assert "2 queries, 4 documents, 0 clips decoded" in capsys.readouterr().out
    voices = make_recordings(tmp_path / "v", [{"_id": "q1", "file": "1.wav"}])
    assert main(["doctor", f"{name}&speech={voices}"]) == 1
    assert "query 'q2' of m has no recording" in capsys.readouterr().out


def test_a_source_is_evaluated_without_its_bad_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_collection(tmp_path / "tiny")
    with (root / "qrels.en.jsonl").open("a") as file:
        file.write('{"query-id": "q0", "corpus-id": "d3", "score": -1}\n')
    name = f"collection:{root}"
    with pytest.raises(DataError, match="a grade below 0"):
        list(open_data(name).qrels("tiny-en"))  # type: ignore[union-attr]
    data = open_data(name, on_bad="skip")
    assert len(list(data.qrels("tiny-en"))) == 5  # type: ignore[union-attr]
    arguments = ["evaluate", "whisper-base + bm25", "--data", name, "--on-bad", "skip", "--dry-run"]
    main(arguments)
    assert "left out: 1 judgments with a negative grade (q0 d3)." in capsys.readouterr().err
    with pytest.raises(UsageError, match="is of sources"):
        open_data("questions:mini", on_bad="skip")
