"""Results of the other benchmarks: stored, checked and scored again as those of squtr."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from squtr.harness.escucha.answerers import NamedAnswerer
from squtr.harness.escucha.evaluate import Options as EscuchaOptions
from squtr.harness.escucha.evaluate import run_evaluation as run_escucha
from squtr.harness.escucha.results import ASK_SCHEMA
from squtr.harness.rir_mega.evaluate import Options as RirMegaOptions
from squtr.harness.rir_mega.evaluate import run_evaluation as run_rir_mega
from squtr.harness.rir_mega.results import PAIR_SCHEMA
from squtr.leaderboard.card import card_section
from squtr.leaderboard.store import read_store
from squtr.leaderboard.submit import prepare, send
from squtr.leaderboard.validate import Validation, validate_file
from squtr.loaders.questions.data import QuestionData
from squtr.loaders.rir_mega.data import RirMegaData

from ..harness.escucha_for_tests import Knows, write_questions
from ..harness.rir_mega_runs_for_tests import build_data, in_rooms, recognizer

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each benchmark, its only result the JSON."""
    root = tmp_path_factory.mktemp("others")
    data = RirMegaData(build_data(root / "rooms"))
    lossy = in_rooms(data, threshold_s=0.4, slope=2.0)
    options = RirMegaOptions(normalizer="default", resamples=100, permutations=300)
    run_rir_mega([recognizer(lossy)], data, out=root / "rir_mega", options=options)
    questions = QuestionData(write_questions(root / "questions"))
    answerer = Knows()
    run_escucha(
        [NamedAnswerer(answerer.spec.name, answerer)],
        questions,
        out=root / "escucha",
        options=EscuchaOptions(resamples=50),
    )
    return {name: root / name for name in ("rir_mega", "escucha")}


@pytest.fixture(params=["rir_mega", "escucha"])
def result(request: pytest.FixtureRequest, runs: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of a result that tests may change."""
    folder = Path(shutil.copytree(runs[request.param], tmp_path / request.param))
    return sorted((folder / "results").glob("*/*.json"))[0]


def messages(validation: Validation) -> str:
    return " | ".join(f"{finding.where}: {finding.message}" for finding in validation.errors)


def test_they_hold_and_are_stored(result: Path, tmp_path: Path) -> None:
    found = validate_file(result)
    assert (messages(found), found.who) == ("", "re-scored")
    sent = send(prepare([result])[0], f"{tmp_path}/store")
    assert len(sent.added) == 2
    (tmp_path / "store").mkdir(exist_ok=True)
    store = read_store(tmp_path / "store")
    assert store.problems == ()
    (entry,) = store.entries
    assert entry.who == "re-scored"
    assert entry.benchmark == result.parts[-4]
    table = store.read_items(entry, entry.configs[0])
    assert table is not None
    assert table.num_rows
    shown = card_section([entry])
    assert f"| {entry.configs[0]} |" in shown
    assert "```bibtex" in shown


def change(path: Path, edit: Edit) -> Validation:
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))
    return validate_file(path)


RIR_MEGA: list[tuple[Edit, str]] = [
    (
        lambda d: d["rates"]["wer"]["reverb"].update(value=0.5),
        "rates.wer.reverb: the result says 0.5, its records give",
    ),
    (lambda d: d["rates"]["wer"]["delta"]["absolute"].update(value=0.3), "is not the difference of"),
    (lambda d: d["rates"]["wer"]["delta"].update(p_value=1.5), "1.5 is no probability"),
    (lambda d: d["rates"]["wer"]["clean"].update(value=-0.1), "is outside"),
    (lambda d: d["rates"]["cer_macro"]["clean"].update(value=0.9), "rates.cer_macro.clean"),
    (lambda d: d.update(benchmark_version="1-0"), "rir_mega '1-0' is not taken here"),
    (lambda d: d["data"].update(config="fr_test"), "is not the config"),
    (lambda d: d["data"].update(partial=True), "partial is true"),
    (lambda d: d["failures"]["reverb"].update(undecodable=1), "failures.reverb.undecodable"),
    (lambda d: d.update(extra=1), "extra: Extra inputs"),
    (lambda d: d.update(main_metric="x"), "'x' is not among the rates"),
    (lambda d: d["system"].update(name="<b>"), "holds '<'"),
]
ESCUCHA: list[tuple[Edit, str]] = [
    (lambda d: d["mcqa"]["scores"]["accuracy"].update(value=0.5, low=0.4), "its records give 1"),
    (lambda d: d["overall"].update(value=0.9, low=0.8), "overall: the result says 0.9"),
    (lambda d: d["overall"].update(n=99), "overall: the result says n = 99"),
    (lambda d: d["mcqa"]["scores"]["accuracy_corrected"].update(value=0.2, low=0.1), "corrected for a chance of"),
    (
        lambda d: d["mcqa"]["scores"].update(unparsed={"value": 2.0, "low": None, "high": None, "n": 4}),
        "is outside [0, 1]",
    ),
    (
        lambda d: d["aif"]["scores"].update(charm={"value": 1.0, "low": None, "high": None, "n": 2}),
        "'charm' is no score",
    ),
    (lambda d: d.update(aif=None), "the result says nothing about them"),
    (lambda d: d.update(benchmark_version="9"), "escucha '9' is not taken here"),
    (lambda d: d["data"]["missing_audio"].update(lost=900), "data.missing_audio"),
    (lambda d: d["data"].update(n="7"), "data.n: Input should be a valid integer"),
    (lambda d: d["answerer"].update(name="<script>"), "holds '<'"),
]


@pytest.mark.parametrize(
    ("name", "edit", "said"),
    [*(("rir_mega", *case) for case in RIR_MEGA), *(("escucha", *case) for case in ESCUCHA)],
    ids=[case[1] for case in (*RIR_MEGA, *ESCUCHA)],
)
def test_what_cannot_be(runs: dict[str, Path], tmp_path: Path, name: str, edit: Edit, said: str) -> None:
    folder = Path(shutil.copytree(runs[name], tmp_path / name))
    found = change(sorted((folder / "results").glob("*/*.json"))[0], edit)
    assert said in messages(found)
    assert found.who == "self-reported"


@pytest.mark.parametrize(
    ("name", "kind", "edit", "said"),
    [
        ("rir_mega", "pairs", lambda rows: rows[0].update(reverb_word_errors=99.0), "do not add up"),
        ("rir_mega", "pairs", lambda rows: rows[0].update(id=rows[1]["id"]), "a pair has two records"),
        ("rir_mega", "pairs", lambda rows: rows[0].update(language="fr"), "another language"),
        ("rir_mega", "pairs", lambda rows: rows.pop(), "the result covers"),
        ("escucha", "asks", lambda rows: rows[0].update(kind="open"), "'open' is no kind of question"),
        ("escucha", "asks", lambda rows: rows.append(rows[0]), "was asked twice in one way"),
        ("escucha", "asks", lambda rows: [row.update(correct=0.0) for row in rows], "its records give"),
        ("escucha", "asks", lambda rows: [row.update(correct=0.5) for row in rows], "neither right nor wrong"),
    ],
)
def test_records_that_do_not_fit(
    runs: dict[str, Path],
    tmp_path: Path,
    name: str,
    kind: str,
    edit: Callable[[list[dict[str, Any]]], object],
    said: str,
) -> None:
    folder = Path(shutil.copytree(runs[name], tmp_path / name))
    path = sorted((folder / "results").glob("*/*.json"))[0]
    table = path.with_suffix(f".{kind}.parquet")
    rows = pq.read_table(table).to_pylist()
    edit(rows)
    schema = PAIR_SCHEMA if kind == "pairs" else ASK_SCHEMA
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), table)
    assert said in messages(validate_file(path))
