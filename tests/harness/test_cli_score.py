"""`squtr score`, `squtr normalize`, `squtr compare`: scores of files, as scripts and people read them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import jiwer
import pytest

from squtr.harness.cli import main
from squtr.harness.metrics.ranking import score_ranking

from .report_runs_for_tests import Example, write_example

REFERENCES = {"a": "the cat sat on the mat", "b": "twenty one dogs", "c": "well-known café"}
HYPOTHESES = {"c": "well known cafe", "a": "cat sit on the mat now", "b": "21 dogs"}
FIELDS = (
    "wer wer_macro cer cer_macro mer substitutions deletions insertions reference_length n loops hallucinations empty "
    "intervals"
).split()


def jsonl(path: Path, texts: dict[str, str]) -> str:
    path.write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in texts.items()), encoding="utf-8")
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return [jsonl(tmp_path / "refs.jsonl", REFERENCES), jsonl(tmp_path / "hyps.jsonl", HYPOTHESES)]


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_wer_agrees_with_jiwer_on_raw_text(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "wer", *files, "--language", "en", "--normalizer", "raw", "--json"]) == 0
    found = told(capsys)
    assert set(FIELDS) <= set(found)
    theirs = jiwer.process_words(list(REFERENCES.values()), [HYPOTHESES[i] for i in REFERENCES])
    assert found["wer"] == pytest.approx(theirs.wer)
    assert found["mer"] == pytest.approx(theirs.mer)
    assert [found[k] for k in ("substitutions", "deletions", "insertions")] == [
        theirs.substitutions,
        theirs.deletions,
        theirs.insertions,
    ]
    assert found["n"] == 3


def test_wer_normalizes_and_writes_items(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = tmp_path / "items.jsonl"
    assert main(["score", "wer", *files, "--language", "en", "--per-item", str(items)]) == 0
    out = capsys.readouterr().out
    assert "unit word, normalizer default 1" in out
    assert str(items) in out
    rows = {row["id"]: row for row in map(json.loads, items.read_text(encoding="utf-8").splitlines())}
    assert list(rows) == ["a", "b", "c"]
    assert rows["b"]["wer"] == 0
    assert rows["c"]["hypothesis"] == "well known cafe"
    assert [rows[i]["word_errors"] for i in "abc"] == [3, 0, 0]


def test_chinese_has_no_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refs = jsonl(tmp_path / "r.jsonl", {"1": "一百倍", "2": "我用 iPhone 手机"})
    hyps = jsonl(tmp_path / "h.jsonl", {"1": "100倍", "2": "我用 iphone 手鸡"})
    assert main(["score", "wer", refs, hyps, "--language", "zh", "--json"]) == 0
    found = told(capsys)
    assert [found["wer"], found["wer_macro"], found["unit"]] == [None, None, "char"]
    assert found["substitutions"] == 1
    assert main(["score", "wer", refs, hyps, "--language", "zh", "--unit", "mixed", "--json"]) == 0
    found = told(capsys)
    # 100 and 倍; 我 用 iphone 手 机.
    assert [found["mixed"], found["reference_length"]] == [pytest.approx(1 / 7), 7]
    assert main(["score", "wer", refs, hyps, "--language", "zh", "--unit", "word"]) == 2
    assert "written without spaces" in capsys.readouterr().err


def test_loops_words_on_silence_and_nothing_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refs = jsonl(tmp_path / "r.jsonl", {"1": "thanks", "2": "", "3": "hello"})
    hyps = jsonl(tmp_path / "h.jsonl", {"1": "thank you " * 9, "2": "thanks for watching", "3": "..."})
    assert main(["score", "wer", refs, hyps, "--language", "en", "--json"]) == 0
    found = told(capsys)
    assert [found[k] for k in ("loops", "hallucinations", "empty", "empty_references", "n")] == [1, 1, 1, 1, 3]


@pytest.mark.parametrize(
    ("extra", "said", "status"),
    [
        (["--language", "xx"], "unknown language 'xx'", 2),
        (["--language", "en", "--unit", "words"], "unknown unit 'words'. Did you mean 'word'?", 2),
        (["--language", "en", "--normalizer", "defualt"], "Did you mean 'default'?", 2),
        (["--language", "en", "--erhua", "drop"], "has no option erhua=drop", 2),
        (["--language", "en", "--format", "json"], "unknown format 'json'", 2),
        (["--language", "en", "--method", "normal"], "unknown method 'normal'", 2),
        (["--language", "en", "--resamples", "0"], "0 resamples", 2),
        (["--language", "en", "--per-item", "items.csv"], "Name it .jsonl, .tsv or .parquet", 2),
        ([], "the following arguments are required: --language", 2),
    ],
)
def test_wrong_calls(
    files: list[str], extra: list[str], said: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = main(["score", "wer", *files, *extra])
    except SystemExit as left:
        found = int(left.code or 0)
    error = capsys.readouterr().err
    assert found == status
    assert said in error
    assert len(error.splitlines()) == 1


def test_missing_and_extra_ids_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refs = jsonl(tmp_path / "r.jsonl", {"a": "x", "b": "y"})
    hyps = jsonl(tmp_path / "h.jsonl", {"a": "x"})
    assert main(["score", "wer", refs, hyps, "--language", "en"]) == 1
    assert "no hypothesis for id 'b'" in capsys.readouterr().err
    assert main(["score", "wer", hyps, refs, "--language", "en"]) == 1
    assert "no reference for id 'b'" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["wer", "ranking"])
def test_subcommands_have_help_with_an_example(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["score", kind, "--help"])
    assert left.value.code == 0
    assert f"squtr score {kind}" in capsys.readouterr().out.partition("example:")[2]


def test_ranking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "qrels").write_text("1 0 a 2\n1 0 b 1\n2 0 c 1\n3 0 d 0\n")
    (tmp_path / "run").write_text("1 Q0 x 1 3 t\n1 Q0 a 2 2 t\n1 Q0 b 3 2 t\n9 Q0 a 1 1 t\n")
    command = ["score", "ranking", str(tmp_path / "qrels"), str(tmp_path / "run"), "--missing", "count"]
    assert main([*command, "--json", "--per-item", str(tmp_path / "items.tsv")]) == 0
    found = told(capsys)
    direct = score_ranking({"1": {"a": 2, "b": 1}, "2": {"c": 1}}, {"1": [("x", 3), ("a", 2), ("b", 2)]})
    for metric in ("ndcg_at_10", "mrr_at_10", "recall_at_10"):
        assert found[metric] == pytest.approx(direct.mean[metric])
    assert [found[k] for k in ("n_queries", "missing", "unjudged", "no_relevant")] == [2, 1, 1, 1]
    assert (tmp_path / "items.tsv").read_text().splitlines()[0] == "id\tndcg_at_10\tmrr_at_10\trecall_at_10"
    assert main([*command, "--metrics", "map_at_100", "hit_rate_at_1"]) == 0
    assert "map_at_100" in capsys.readouterr().out
    assert main([*command, "--metrics", "ndgc_at_10"]) == 2
    assert "Did you mean 'ndcg_at_10'?" in capsys.readouterr().err


def test_a_short_line_of_a_run_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "qrels").write_text("1 0 a 2\n")
    (tmp_path / "run").write_text("1 Q0 x 1 3 t\n1 Q0 a 2 2\n")
    assert main(["score", "ranking", str(tmp_path / "qrels"), str(tmp_path / "run")]) == 1
    assert f"{tmp_path / 'run'}, line 2: 5 fields" in capsys.readouterr().err


def test_clusters_by_id(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = tmp_path / "speakers.tsv"
    labels.write_text("a\tone\nb\tone\nc\tone\n")
    assert main(["score", "wer", *files, "--language", "en", "--json", "--clusters", str(labels)]) == 0
    # One speaker says nothing about the spread over speakers.
    assert set(told(capsys)["intervals"].values()) == {None}  # type: ignore[attr-defined]
    labels.write_text("a\tone\n")
    assert main(["score", "wer", *files, "--language", "en", "--clusters", str(labels)]) == 1
    assert "id 'b' has no cluster" in capsys.readouterr().err


def normalized(
    text: bytes, *arguments: str, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> tuple[int, bytes]:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    status = main(["normalize", *arguments])
    return status, capsysbinary.readouterr().out


def test_normalize(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    def lines(text: str | bytes, *arguments: str) -> list[str]:
        raw = text if isinstance(text, bytes) else text.encode()
        status, out = normalized(raw, *arguments, monkeypatch=monkeypatch, capsysbinary=capsysbinary)
        assert status == 0
        assert not out or out.endswith(b"\n")
        return out.decode().split("\n")[:-1]

    assert lines("¿Treinta y seis años?\n\nNIÑO\r\n", "--language", "es") == ["36 año", "", "niño"]
    assert lines("qué año", "--language", "es", "--accents", "fold") == ["que año"]
    assert lines("臺灣\n", "--language", "zh", "--script", "strict") == ["臺灣"]
    assert lines("呃，花儿", "--language", "zh", "--erhua", "drop", "--interjections", "drop") == ["花"]
    assert lines(b"\xef\xbb\xbfOne\n", "--language", "en", "--normalizer", "raw") == ["One"]
    assert lines("a\u2028b\n", "--language", "en", "--normalizer", "raw") == ["a b"]
    assert lines("", "--language", "en") == []


def test_normalize_names_the_line_that_is_not_utf8(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"one\ncaf\xe9\n")))
    assert main(["normalize", "--language", "en"]) == 1
    assert "standard input, line 2: byte 0xe9" in capsys.readouterr().err
    assert main(["normalize", "--language", "klingon"]) == 2
    assert "unknown language" in capsys.readouterr().err


def test_compare_files(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = str(tmp_path / "one.jsonl"), str(tmp_path / "two.parquet")
    perfect = jsonl(tmp_path / "perfect.jsonl", REFERENCES)
    assert main(["score", "wer", *files, "--language", "en", "--per-item", one]) == 0
    assert main(["score", "wer", files[0], perfect, "--language", "en", "--per-item", two]) == 0
    capsys.readouterr()
    assert main(["compare", one, two, "--json"]) == 0
    rows = {row["metric"]: row for row in told(capsys)["comparisons"]}  # type: ignore[attr-defined]
    assert list(rows) == ["wer", "wer_macro", "cer", "cer_macro"]
    assert rows["wer"]["b"] == 0
    assert rows["wer"]["difference"] == pytest.approx(rows["wer"]["a"])
    assert rows["wer"]["n"] == 3
    assert rows["wer"]["exact"]
    assert rows["wer"]["p_holm"] >= rows["wer"]["p_value"]
    assert main(["compare", one, two]) == 0
    assert "detectable" in capsys.readouterr().out


def test_compare_different_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    one.write_text('{"id": "a", "x": 1}\n{"id": "b", "x": 0.5}\n')
    two.write_text('{"id": "a", "x": 0}\n{"id": "c", "x": 0.5}\n')
    assert main(["compare", str(one), str(two)]) == 1
    assert "'b' is in one only" in capsys.readouterr().err
    assert main(["compare", str(one), str(two), "--on", "intersection", "--json"]) == 0
    (row,) = told(capsys)["comparisons"]  # type: ignore[misc]
    assert row["n"] == 1
    assert row["left_out"] == 2
    assert main(["compare", str(one), str(two), "--on", "both"]) == 2


def test_compare_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = write_example(tmp_path, Example(languages=("en",), conditions=("text", "clean", "high_noise"), n=12))
    folders = sorted(p for p in (tmp_path / "results").iterdir())
    assert main(["compare", str(folders[0]), str(folders[1]), "--json"]) == 0
    rows = told(capsys)["comparisons"]
    by_config = {(row["config"], row["metric"]): row for row in rows}  # type: ignore[attr-defined]
    assert {config for config, _ in by_config} == {"en_text", "en_clean", "en_high_noise"}
    row = by_config["en_clean", "ndcg_at_10"]
    values = {r.result.scores["ndcg_at_10"].value for r in records if r.result.data.config == "en_clean"}
    assert any(row["a"] == pytest.approx(v, abs=1e-6) for v in values)
    assert row["n"] == 12
    assert ("en_text", "wer") not in by_config
    # One system under two conditions.
    clean, noisy = folders[0] / "en_clean.json", folders[0] / "en_high_noise.json"
    assert main(["compare", str(clean), str(noisy), "--metrics", "wer", "ndcg_at_10"]) == 0
    assert "en_clean against en_high_noise" in capsys.readouterr().out
    assert main(["compare", str(folders[0]), str(folders[1]), "--metrics", "wer", "--json"]) == 0
    assert len(told(capsys)["comparisons"]) == 2  # type: ignore[arg-type]
    assert main(["compare", str(folders[0]), str(folders[1]), "--metrics", "ewr"]) == 2
    assert "Did you mean 'wer'?" in capsys.readouterr().err
    assert main(["compare", str(tmp_path), str(folders[0])]) == 2
    assert "holds 3 systems" in capsys.readouterr().err
    noisy.unlink()
    assert main(["compare", str(folders[0]), str(folders[1])]) == 1
    assert "only one side has 'en_high_noise'" in capsys.readouterr().err
    assert main(["compare", str(folders[0]), str(folders[1]), "--on", "intersection"]) == 0
    assert main(["compare", str(tmp_path / "none"), str(folders[1])]) == 2


def test_compare_refuses_other_normalizers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_example(tmp_path, Example(languages=("en",), conditions=("text", "clean"), n=6))
    folders = sorted(p for p in (tmp_path / "results").iterdir())
    path = folders[0] / "en_clean.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["system"]["normalizer_version"] = "0"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert main(["compare", str(path), str(folders[1] / "en_clean.json")]) == 1
    assert "normalizer version is '0' on one side" in capsys.readouterr().err


def test_bad_judgments_are_all_told_or_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    qrels, run = tmp_path / "q.trec", tmp_path / "r.trec"
    qrels.write_text("q 0 a 1\nq 0 b -1\nq 0 c 1.5\nq 0 a 2\n")
    run.write_text("q Q0 a 1 2.0 x\n")
    command = ["score", "ranking", str(qrels), str(run)]
    assert main(command) == 1
    error = capsys.readouterr().err
    assert "3 faults in" in error
    assert "--on-bad skip" in error
    assert all(f"line {number}:" in error for number in (2, 3, 4))
    assert main([*command, "--on-bad", "skip", "--json"]) == 0
    found = told(capsys)
    assert found["left_out"] == {"grade-negative": 1, "grade-form": 1, "judged-twice": 1}
    assert main([*command, "--on-bad", "ignore"]) == 2
