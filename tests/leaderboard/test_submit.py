"""The commands: submit to a folder, and the section of a model card."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCardData
from huggingface_hub.repocard_data import model_index_to_eval_results

from squtr.errors import DataError
from squtr.harness.cli import main
from squtr.harness.results.envelope import read_result
from squtr.leaderboard.card import card_section, model_index
from squtr.leaderboard.entry import from_result, merge
from squtr.leaderboard.store import read_store


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_nothing_is_sent_without_yes(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    command = ["submit", str(run), "--to", f"{store}/", "--note", "On my laptop."]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "Nothing was sent. Add --yes to send it." in said
    assert "garbler + words, en_text: nDCG@10 0.938488 [" in said
    assert "24 files" in said
    assert not store.exists()
    assert main([*command, "--yes"]) == 0
    assert f"Added 24 files to {store}/." in capsys.readouterr().out
    assert len(files(store)) == 24
    assert json.loads(next(store.rglob("*.json")).read_text())["note"] == "On my laptop."
    assert main([*command, "--leaderboard", "--yes", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["sent"]["added"], len(told["sent"]["there"])) == (True, [], 12)
    assert len(files(store)) == 24


def test_single_results_without_records(run: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    names = [str(run / f"results/garbler+words/{name}.json") for name in ("en_text", "en_clean")]
    assert main(["submit", *names, "--to", f"{store}/", "--no-records", "--yes"]) == 0
    assert [Path(path).suffix for path in files(store)] == [".json", ".json"]
    (entry,) = read_store(store).entries
    assert (entry.who, entry.configs) == ("self-reported", ("en_clean", "en_text"))
    # A store can be submitted to another.
    assert main(["submit", str(store), "--to", f"{tmp_path}/other/", "--yes"]) == 0
    assert [entry.who for entry in read_store(tmp_path / "other").entries] == ["self-reported"]


def test_one_refused_result_stops_all(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    path = copy / "results/garbler+words/en_clean.json"
    document = json.loads(path.read_text())
    document["scores"]["ndcg_at_10"]["value"] = 0.99
    path.write_text(json.dumps(document))
    command = ["submit", str(copy), "--to", f"{tmp_path}/store/", "--yes"]
    assert main(command) == 1
    said = capsys.readouterr().out
    # The typed result is refused too where its loss is not the difference to what the changed one says.
    assert "of 12 results cannot be submitted. Nothing was sent." in said
    assert "en_clean.json: refused" in said
    assert not (tmp_path / "store").exists()
    assert main([*command, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False


def test_what_is_said_of_models(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    about = tmp_path / "about.json"
    model = {"role": "transcriber", "link": "https://example.org/garbler", "parameters": 7, "open_weights": True}
    about.write_text(json.dumps({"models": [model]}))
    command = ["submit", str(run), "--to", f"{tmp_path}/store/", "--about", str(about), "--yes"]
    assert main(command) == 0
    entry = read_store(tmp_path / "store").entries[0]
    found = next(model for model in entry.models if model.role == "transcriber")
    assert (found.link, found.parameters, found.open_weights) == ("https://example.org/garbler", 7, True)
    for wrong, said in (
        ({"models": [{**model, "link": "javascript:alert(1)"}]}, "0.link"),
        ({"models": [{**model, "role": "cook"}]}, "0.role"),
        ({}, "should be a valid list"),
    ):
        about.write_text(json.dumps(wrong))
        assert main(command) == 1
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["submit", "RUN"], 2, "it is not clear what to submit to"),
        (["submit", "--to", "org/x"], 2, "no result is named"),
        (["submit", "RUN", "--leaderboard"], 2, "no leaderboard is named"),
        (["submit", "RUN", "--to", "org/x", "--out", "y"], 2, "--out is not for a leaderboard"),
        (["submit", "RUN", "--to", "./x", "--direct"], 2, "--direct is about the Hub"),
        (["submit", "RUN", "--to", "./x", "--note", "a\u202eb"], 1, "cannot be seen"),
        (["submit", "RUN", "--to", "./x", "--eval-results"], 2, "no data set on the Hub"),
        (["submit", "nothing", "--to", "./x"], 1, "nothing does not exist"),
        (["validate"], 2, "there is nothing to check"),
        (["validate", "RUN", "--comment"], 2, "are about pull requests"),
        (["validate", "RUN", "--base", "nothing"], 2, "needs two copies"),
        (["validate", "RUN", "--requests", "org/x"], 2, "checks the Hub, not files"),
        (["validate", "--requests", "org"], 2, "not the name of a repository"),
        (["validate", "nothing"], 1, "does not exist"),
        (["card", "nothing"], 1, "does not exist"),
    ],
)
def test_wrong_calls(
    run: Path, arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(run) if one == "RUN" else one for one in arguments]) == status
    shown = capsys.readouterr()
    assert said in shown.err
    assert "Traceback" not in shown.err


def test_the_card(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run / "results/garbler+words"
    assert main(["card", str(folder)]) == 0
    shown = capsys.readouterr().out
    result = read_result(folder / "en_medium_noise.json")
    wer = result.scores["wer"]
    row = next(line for line in shown.splitlines() if line.startswith("| en_medium_noise |"))
    assert f"{wer.value:.4f} ({wer.low:.4f} to {wer.high:.4f})" in row
    assert row.endswith("| 12 |")
    lines = shown.splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 8
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1
    assert "pip install squtr==" in shown
    assert "2602.12783" in shown


def test_the_model_index(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run / "results/garbler+words"
    assert main(["card", str(folder), "--model-index", "--data-set", "org/squtr-mini"]) == 0
    index = yaml.safe_load(capsys.readouterr().out)["model-index"]
    name, results = model_index_to_eval_results(index)
    assert name == "garbler + words"
    expected = read_result(folder / "zh_clean.json").scores["cer"].value
    assert expected in [r.metric_value for r in results if r.metric_type == "cer" and r.dataset_config == "zh_clean"]
    assert ModelCardData(model_name=name, eval_results=results).to_dict()["model-index"]


def test_hostile_names_are_text_on_the_card(run: Path) -> None:
    result = read_result(run / "results/garbler+words/en_clean.json")
    spec = {
        **(result.system.components["transcriber"]),
        "settings": {"prompt": "</pre><script>alert(1)</script> | `x`\n# big"},
    }
    system = result.system.model_copy(
        update={"name": "[x](javascript:alert(1)) | <b>", "components": {"transcriber": spec}}
    )
    entries = merge([from_result(result.model_copy(update={"system": system, "squtr_version": "1; rm -rf /"}))])
    shown = card_section(entries)
    assert "<script>" not in shown
    assert "\n# big" not in shown
    assert r"\[x\](javascript\:" in shown
    assert "pip install squtr==1rmrf" in shown
    assert yaml.safe_load(model_index(entries))["model-index"][0]["name"] == system.name
    with pytest.raises(DataError, match="no result to show"):
        card_section([])
    with pytest.raises(DataError, match="no result to show"):
        model_index([])


def test_a_result_that_does_not_hold_has_no_card(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(shutil.copy(run / "results/garbler+words/en_clean.json", tmp_path))
    document = json.loads(path.read_text())
    document["scores"]["ndcg_at_10"]["value"] = 7.0
    path.write_text(json.dumps(document))
    assert main(["card", str(path)]) == 1
    assert "does not hold" in capsys.readouterr().err


def test_the_workflow_runs_commands_that_exist() -> None:
    root = Path(__file__).parents[2]
    workflow = yaml.safe_load((root / "scripts/leaderboard/validate-submission.yml").read_text())
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    commands = [step.split() for step in steps if step.startswith("squtr ")]
    assert [command[1] for command in commands] == ["validate", "validate"]
    # No text of a pull request comes into a command: values go through the environment.
    assert all("${{" not in step for step in steps)
    assert workflow["permissions"] == {"contents": "read"}
    # With nothing there to check, the options are read and the folders looked for.
    assert main(commands[1][1:]) == 2
