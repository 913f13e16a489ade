"""Results in other tools' files and back: trec_eval gives the same scores, and so does what is read again."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, SqutrError, UnknownNameError, UsageError
from squtr.harness.cli import main
from squtr.harness.components.retrievers.trec_run import TrecRun
from squtr.harness.components.transcribers.files import TranscriptsFile
from squtr.harness.data import open_data
from squtr.harness.exchange.beir import export_beir
from squtr.harness.exchange.transcripts import export_transcripts
from squtr.harness.exchange.trec import export_trec, single_precision
from squtr.harness.protocols import ComponentSpec, Hit, Rewritten, Transcript
from squtr.harness.results.envelope import Result, RunRecord, read_record, read_runs, run_path, write_run
from squtr.harness.results.files import shortened
from squtr.harness.systems import load_system
from squtr.harness.systems.system import System
from squtr.loaders.data import LiveData, SpeechData
from squtr.loaders.records import Document
from squtr.loaders.sources import load_source

from .evaluate_runs_for_tests import evaluate_runs
from .evaluation_for_tests import truth_of
from .fakes import LookupTranscriber, WordRetriever

METRICS = ["ndcg_at_10", "mrr_at_10", "recall_at_10", "recall_at_100", "wer", "cer"]
SYSTEM = "lookup + close"
FOLDER = "lookup_close"


class Close(WordRetriever):
    """Scores that differ beyond 32 bits only, in an order that ids do not have, and two that are equal."""

    def __init__(self) -> None:
        super().__init__("close")

    def search(self, queries: list[str], *, k: int) -> list[list[Hit]]:
        found = []
        for hits, query in zip(super().search(queries, k=k), queries, strict=True):
            rest = [d.id for d in self._documents if d.id not in {hit.document_id for hit in hits}]
            rest = sorted(rest, key=lambda id_: hash_of(query + id_))
            near = [Hit(id_, 0.5 - place * 1e-12) for place, id_ in enumerate(rest)]
            found.append((hits + near)[:k])
        return found


def hash_of(text: str) -> int:
    return sum(ord(c) * 31**i for i, c in enumerate(text)) % 997


class Mends:
    """A rewriter that gives the transcript in capitals, and fails on one."""

    spec = ComponentSpec("rewriter", "test", "mends", revision="1")

    def supports(self, language: str) -> bool:
        return True

    def rewrite(self, transcripts: list[list[str]], *, language: str) -> list[Rewritten]:
        return [
            Rewritten("", error="no idea") if "lamp" in own[0] else Rewritten(f"{own[0]} stone") for own in transcripts
        ]


@pytest.fixture(scope="module")
def transcriber(tiny: LiveData) -> LookupTranscriber:
    """Right, but for one query of each language that fails, one that is empty, and some that are other words."""
    told: dict[str, str | Transcript] = {}
    for key, query in truth_of(tiny).items():
        told[key] = query.text
        if query.condition == "high_noise":
            told[key] = {
                "q0": Transcript("", error="too loud"), "q1": "",
                "q3": Transcript(f"{query.text} lamp", truncated=True),
            }.get(query.id, query.text)  # fmt: skip
    return LookupTranscriber(told)


def evaluated(system: System, data: SpeechData, out: Path, configs: list[str] | None = None) -> Path:
    evaluate_runs([system], data, out=out, configs=configs, metrics=METRICS, resamples=10, samples=0)
    return out


@pytest.fixture(scope="module")
def run(tiny: LiveData, transcriber: LookupTranscriber, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return evaluated(System(transcriber=transcriber, retriever=Close()), tiny, tmp_path_factory.mktemp("run"))


def results(folder: Path) -> dict[str, Result]:
    return {record.result.data.config: record.result for record in read_runs(folder)}


def values(result: Result) -> dict[str, tuple[float | None, int]]:
    return {name: (score.value, score.n) for name, score in result.scores.items()}


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_trec_eval_reads_the_ranking_that_was_scored(run: Path, tiny: LiveData, tmp_path: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    done = export_trec(run, tmp_path)
    assert sorted(path.name for path in done.files) == sorted(
        f"{subset}_{condition}.trec" for subset in tiny.subsets for condition in ("text", "clean", "high_noise")
    )
    for path in done.files:
        subset, _, condition = path.stem.partition("_")
        scored = results(run)[f"{tiny.subsets[subset]}_{condition}"].scores
        qrels = tiny.qrels(subset)
        with path.open(encoding="utf-8") as file:
            ranking = pytrec_eval.parse_run(file)
        found = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "recall.100", "recall.10"}).evaluate(ranking)
        for metric, name in (
            ("ndcg_at_10", "ndcg_cut_10"),
            ("recall_at_100", "recall_100"),
            ("recall_at_10", "recall_10"),
        ):
            # As `trec_eval -c`: a query without a line scores 0.
            mean = math.fsum(own[name] for own in found.values()) / len(qrels)
            assert scored[metric].value == pytest.approx(mean, abs=1e-9), (path.name, metric)
    assert any("scores of" in remark and "were moved" in remark for remark in done.remarks)


def test_the_naive_scores_would_be_read_in_another_order(run: Path, tiny: LiveData) -> None:
    """What the export is for: as 32 bits the scores of these records are tied, and ids then decide."""
    row = read_record(run_path(run, SYSTEM, "en_clean")).items.to_pylist()[0]
    single = np.asarray(row["scores"], dtype=np.float32)
    naive = sorted(zip(single.tolist(), row["documents"], strict=True), reverse=True)
    assert [id_ for _, id_ in naive] != row["documents"]


@given(
    st.dictionaries(
        st.text("abc", min_size=1, max_size=3), st.floats(allow_nan=False, allow_infinity=False), min_size=1
    )
)
def test_any_ranking_keeps_its_order_in_32_bits(hits: Mapping[str, float]) -> None:
    ids = [id_ for id_, _ in sorted(hits.items(), key=lambda hit: (hit[1], hit[0]), reverse=True)]
    scores, moved = single_precision(ids, [hits[id_] for id_ in ids])
    again = sorted(zip(np.asarray(scores, np.float32).tolist(), ids, strict=True), reverse=True)
    assert [id_ for _, id_ in again] == ids
    assert moved or scores == [hits[id_] for id_ in ids]


def test_a_run_read_again_scores_the_same(run: Path, tiny: LiveData, tmp_path: Path) -> None:
    export_trec(run, tmp_path / "trec", configs=["*_clean"])
    system = load_system(f"trec:{tmp_path}/trec/{FOLDER}/{{config}}.trec")
    again = results(evaluated(system, tiny, tmp_path / "again", ["en_clean", "zh_clean"]))
    before = results(run)
    assert set(again) == {"en_clean", "zh_clean"}
    for config, result in again.items():
        for metric in ("ndcg_at_10", "mrr_at_10", "recall_at_10", "recall_at_100"):
            assert result.scores[metric] == before[config].scores[metric], (config, metric)


def test_what_a_run_cannot_say_is_told(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "trec", str(run), "--out", str(tmp_path), "--configs", "en_high_noise"]) == 0
    said = capsys.readouterr()
    assert said.out == f"Wrote 1 run into {tmp_path}.\n"
    assert f"{SYSTEM} on tiny-en_high_noise: of 5 queries 1 failed and 1 found nothing; a run has no line" in said.err
    lines = lines_of(tmp_path / FOLDER / "tiny-en_high_noise.trec")
    assert {line.split()[0] for line in lines} == {"q2", "q3", "q4"}
    assert all(len(line.split()) == 6 and line.split()[1] == "Q0" and line.split()[5] == FOLDER for line in lines)
    assert main(["export", "trec", str(run), "--out", str(tmp_path), "--configs", "en_clean", "--json"]) == 0
    assert [Path(f).name for f in json.loads(capsys.readouterr().out)["files"]] == ["tiny-en_clean.trec"]


def test_a_subset_in_two_configs_is_written_once(
    run: Path, tiny: LiveData, transcriber: LookupTranscriber, tmp_path: Path
) -> None:
    both = evaluated(
        System(transcriber=transcriber, retriever=Close()), tiny, tmp_path / "both", ["en_clean", "tiny-en_clean"]
    )
    assert [path.name for path in export_trec(both, tmp_path / "out", configs=["*_clean"]).files] == [
        "tiny-en_clean.trec"
    ]
    record = read_record(run_path(both, SYSTEM, "tiny-en_clean"))
    turned = record.items.set_column(
        record.items.column_names.index("documents"),
        record.items.schema.field("documents"),
        [[own[::-1] for own in record.items["documents"].to_pylist()]],
    )
    write_run(both, RunRecord(record.result, turned))
    with pytest.raises(DataError, match="two different results on tiny-en_clean"):
        export_trec(both, tmp_path / "out", configs=["*_clean"])


def test_what_cannot_be_exported(run: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no results"):
        export_trec(tmp_path, tmp_path / "out")
    with pytest.raises(UnknownNameError, match=r"Did you mean 'lookup \+ close'"):
        export_trec(run, tmp_path / "out", systems=["lookup + clos"])
    with pytest.raises(UnknownNameError, match=r"'en_cleam'.*Did you mean 'en_clean'"):
        export_trec(run, tmp_path / "out", configs=["en_cleam"])
    record = read_record(run_path(run, SYSTEM, "en_clean"))
    old = tmp_path / "old"
    ranks = [12] * record.items.num_rows
    place = record.items.column_names.index("first_relevant_rank")
    items = record.items.set_column(place, record.items.schema.field(place), [ranks])
    write_run(old, RunRecord(record.result, shortened(items, 10)))
    with pytest.raises(DataError, match="name 10 of the documents that query 'q0' retrieved"):
        export_trec(old, tmp_path / "out")
    names = [[id_.replace("d", "d ") for id_ in own] for own in record.items["documents"].to_pylist()]
    place = record.items.column_names.index("documents")
    write_run(old, RunRecord(record.result, record.items.set_column(place, record.items.schema.field(place), [names])))
    with pytest.raises(DataError, match=r"the id 'd \d+' of .* holds a blank"):
        export_trec(old, tmp_path / "out")
    with pytest.raises(DataError, match="was imported"):
        imported = record.result.model_copy(update={"origin": "imported"})
        write_run(tmp_path / "theirs", RunRecord(imported, record.items.slice(0, 0)))
        export_trec(tmp_path / "theirs", tmp_path / "out")


def test_transcripts_read_again_score_the_same(run: Path, tiny: LiveData, tmp_path: Path) -> None:
    done = export_transcripts(run, tmp_path / "asr")
    assert len(done.files) == 4
    rows = {row["id"]: row for row in map(json.loads, lines_of(tmp_path / f"asr/{FOLDER}/tiny-en_high_noise.jsonl"))}
    about = {"subset": "tiny-en", "condition": "high_noise"}
    assert rows["q0"] == {"id": "q0", **about, "error": "too loud"}
    assert rows["q1"] == {"id": "q1", **about, "text": ""}
    assert rows["q3"] == {"id": "q3", **about, "text": "garden lamp", "truncated": True}
    transcripts = load_system(f"transcripts:{tmp_path}/asr/{FOLDER}/{{config}}.jsonl + bm25").transcriber
    again = results(evaluated(System(transcriber=transcripts, retriever=Close()), tiny, tmp_path / "again"))
    before = results(run)
    assert set(again) == set(before)
    for config, result in again.items():
        assert values(result) == values(before[config]), config
        assert result.scores == before[config].scores
        assert result.failures == before[config].failures


def test_sclite_s_texts_read_again_score_the_same(run: Path, tiny: LiveData, tmp_path: Path) -> None:
    done = export_transcripts(run, tmp_path / "asr", format_="trn", configs=["en_clean", "en_high_noise"])
    assert lines_of(tmp_path / f"asr/{FOLDER}/tiny-en_high_noise.trn") == [
        "(q1)", "lamp (q2)", "garden lamp (q3)", "bridge (q4)",
    ]  # fmt: skip
    assert any("tiny-en_high_noise: 1 of 5 failed; TRN has no line for them" in remark for remark in done.remarks)
    transcripts = load_system(f"transcripts:{tmp_path}/asr/{FOLDER}/{{config}}.trn + bm25").transcriber
    again = evaluated(System(transcriber=transcripts, retriever=Close()), tiny, tmp_path / "again", ["en_clean"])
    assert values(results(again)["en_clean"]) == values(results(run)["en_clean"])


def test_files_without_the_failed_items_score_the_same_on_request(run: Path, tiny: LiveData, tmp_path: Path) -> None:
    """Under noise one query failed and one found nothing; the files lack them, which is refused without the request."""
    export_trec(run, tmp_path / "trec", configs=["en_high_noise"])
    export_transcripts(run, tmp_path / "asr", format_="trn", configs=["en_high_noise"])
    before = results(run)["en_high_noise"]
    ranked, written = tmp_path / "trec" / FOLDER / "{config}.trec", tmp_path / "asr" / FOLDER / "{config}.trn"
    with pytest.raises(DataError, match=r"2 of 5 .*no ranking of tiny-en under high_noise"):
        evaluated(System(retriever=TrecRun(ranked)), tiny, tmp_path / "none", ["en_high_noise"])
    with pytest.raises(SqutrError, match="1 of 5 items have no transcript of tiny-en under high_noise"):
        transcripts = TranscriptsFile(written)
        evaluated(System(transcriber=transcripts, retriever=Close()), tiny, tmp_path / "none", ["en_high_noise"])
    counted = System(retriever=TrecRun(ranked, missing="count"))
    found = results(evaluated(counted, tiny, tmp_path / "runs", ["en_high_noise"]))["en_high_noise"]
    for metric in ("ndcg_at_10", "mrr_at_10", "recall_at_10", "recall_at_100"):
        assert found.scores[metric] == before.scores[metric], metric
    counted = System(transcriber=TranscriptsFile(written, missing="count"), retriever=Close())
    found = results(evaluated(counted, tiny, tmp_path / "texts", ["en_high_noise"]))["en_high_noise"]
    assert found.scores == before.scores


def test_there_is_no_ctm_without_times(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="no times of words"):
        export_transcripts(run, tmp_path, format_="ctm")
    assert main(["export", "transcripts", str(run), "--out", str(tmp_path / "o"), "--format", "ctm"]) == 2
    assert "--format trn" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_what_was_rewritten(tiny: LiveData, transcriber: LookupTranscriber, tmp_path: Path) -> None:
    system = System(transcriber=transcriber, rewriter=Mends(), retriever=Close())
    out = evaluated(system, tiny, tmp_path / "run", ["en_clean"])
    folder = "lookup_mends_close"
    export_transcripts(out, tmp_path / "plain")
    rows = [json.loads(line) for line in lines_of(tmp_path / "plain" / folder / "tiny-en_clean.jsonl")]
    assert [row["text"] for row in rows] == ["river", "stone", "lamp", "garden", "bridge"]
    export_transcripts(out, tmp_path / "mended", rewritten=True)
    rows = [json.loads(line) for line in lines_of(tmp_path / "mended" / folder / "tiny-en_clean.jsonl")]
    assert rows[0]["text"] == "river stone"
    assert rows[2] == {
        "id": "q2", "subset": "tiny-en", "condition": "clean", "error": "the rewriter failed: no idea",
    }  # fmt: skip
    transcripts = load_system(f"transcripts:{tmp_path}/mended/{folder}/{{config}}.jsonl + bm25").transcriber
    again = results(
        evaluated(System(transcriber=transcripts, retriever=Close()), tiny, tmp_path / "again", ["en_clean"])
    )["en_clean"]
    assert again.scores["ndcg_at_10"] == results(out)["en_clean"].scores["ndcg_at_10"]


def test_only_what_transcribes_has_transcripts(run: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no system in .* rewrites transcripts"):
        export_transcripts(run, tmp_path / "o", rewritten=True)
    with pytest.raises(DataError, match=r"no system in .* transcribes"):
        export_transcripts(run, tmp_path / "o", configs=["en_text"])


def test_transcripts_of_other_tools_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("q1 what is a bond\nq2\n", encoding="utf-8")
    out = tmp_path / "asr.jsonl"
    assert main(["import", "transcripts", str(tmp_path / "text"), "--condition", "clean", "--out", str(out)]) == 0
    assert f"Wrote 2 transcripts: evaluate them as transcripts:{out}." in capsys.readouterr().out
    assert [json.loads(line) for line in lines_of(out)] == [
        {"id": "q1", "condition": "clean", "text": "what is a bond"}, {"id": "q2", "condition": "clean", "text": ""},
    ]  # fmt: skip
    for name in ("trec", "beir"):
        assert main(["import", name, "x"]) == 2
        assert f"{name} needs no import" in capsys.readouterr().err


def test_the_texts_of_a_data_set_read_again_are_the_same(tiny: LiveData, tmp_path: Path) -> None:
    done = export_beir(tiny, tmp_path)
    assert len(done.files) == 3 * len(tiny.subsets)
    for subset, language in tiny.subsets.items():
        source = load_source(f"beir:{tmp_path / subset}?language={language}")
        (name,) = source.subsets
        assert name == subset
        assert list(source.queries(name)) == list(tiny.queries(subset))
        assert list(source.documents(name)) == list(tiny.documents(subset))
        grades: dict[str, dict[str, int]] = {}
        for qrel in source.qrels(name):
            grades.setdefault(qrel.query_id, {})[qrel.document_id] = qrel.score
        assert grades == {id_: own for id_, own in tiny.qrels(subset).items() if own}


def test_beir_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "beir", "mini", "--out", str(tmp_path), "--subsets", "mini-en"]) == 0
    said = capsys.readouterr()
    assert said.out == f"Wrote 1 subset into {tmp_path}.\n"
    assert f"beir:{tmp_path / 'mini-en'}?language=en" in said.err
    assert lines_of(tmp_path / "mini-en/qrels/test.tsv")[0] == "query-id\tcorpus-id\tscore"
    assert set(json.loads(lines_of(tmp_path / "mini-en/corpus.jsonl")[0])) == {"_id", "title", "text"}
    with pytest.raises(UnknownNameError, match="unknown subset 'mini-em'"):
        export_beir(open_data("mini"), tmp_path, subsets=["mini-em"])  # type: ignore[arg-type]


class Odd(LiveData):
    """A corpus whose ids the files of BEIR cannot hold."""

    def __init__(self) -> None:
        self.split, self.subsets = "test", {"s": "en"}

    def has_corpus(self, subset: str) -> bool:
        return True

    def queries(self, subset: str) -> list:  # type: ignore[type-arg]
        return []

    def qrels(self, subset: str) -> dict[str, dict[str, int]]:
        return {}

    def documents(self, subset: str) -> list[Document]:  # type: ignore[override]
        return [Document("a", "", "fine"), Document("b\tc", "", "odd")]


def test_an_export_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the id 'b\\tc' holds a sign"):
        export_beir(Odd(), tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_the_commands_of_the_page_run(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "results.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```bash\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "run").symlink_to(run, target_is_directory=True)
    (tmp_path / "text").write_text("q1 what is a bond\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert [line[1:3] for line in lines] == [
        ["export", "trec"], ["export", "transcripts"], ["export", "transcripts"], ["export", "beir"],
        ["export", "mteb"], ["import", "transcripts"],
    ]  # fmt: skip
    for line in lines:
        assert main(line[1:]) == 0, line
        assert capsys.readouterr().out.startswith("Wrote "), line
    for place in (f"trec/{FOLDER}/tiny-en_clean.trec", f"asr/{FOLDER}/tiny-zh_clean.trn", "beir/mini-zh/corpus.jsonl"):
        assert Path(place).is_file(), place
