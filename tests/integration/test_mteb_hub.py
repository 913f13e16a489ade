"""The tasks of mteb from a data set on the Hub, as `squtr push` wrote it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from huggingface_hub import HfApi

from squtr.loaders.data import BuiltData
from squtr.loaders.hub.push import push

from .conftest import OWNER
from .hub import LocalHub

CODE = """
import json
import squtr

for name in ("org/data", "org/data@v1"):
    (spoken, typed) = squtr.mteb_tasks(data=name)
    for task in (spoken, typed):
        task.load_data()
    clean, noisy = (spoken.dataset[f"tiny-zh_{condition}"]["test"] for condition in ("clean", "medium_noise"))
    print(json.dumps({
        "names": [spoken.metadata.name, typed.metadata.name],
        "revision": spoken.metadata.revision,
        "columns": sorted(noisy["queries"].features),
        "ids": list(noisy["queries"]["id"]),
        "samples": len(noisy["queries"][0]["audio"]["array"]),
        "shared": clean["corpus"] is noisy["corpus"],
        "documents": len(noisy["corpus"]),
        "relevant": noisy["relevant_docs"],
        "typed": typed.dataset["tiny-zh_text"]["test"]["queries"].to_list(),
    }))
"""


def test_tasks_from_the_hub(hub: LocalHub, built: Path, apart: Callable[..., str]) -> None:
    report = push(built, "org/data", tag="v1", token=OWNER, endpoint=hub.endpoint)
    hub.storage.write("org/data", "notes.txt", b"later")
    newest = hub.storage.repos["org/data"].resolve("main").oid
    data = BuiltData(built)
    for line, revision in zip(apart(CODE).splitlines()[-2:], (newest, report.commit), strict=True):
        found = json.loads(line)
        assert found["names"] == ["SQuTRTinyZh", "SQuTRTinyZhText"]
        assert found["revision"] == revision
        assert found["columns"] == ["audio", "id"]
        assert found["ids"] == [query.id for query in data.queries("tiny-zh")]
        assert found["samples"] > 10_000
        assert found["shared"]
        assert found["documents"] == len(data.documents("tiny-zh"))
        assert found["relevant"] == data.qrels("tiny-zh")
        assert found["typed"] == [{"id": query.id, "text": query.text} for query in data.queries("tiny-zh")]


REFUSED = """
from squtr.errors import SqutrError
from squtr.harness.mteb.task_data import open_task_data

for name in ("org/nothing", "org/other"):
    try:
        open_task_data(name, None)
    except SqutrError as error:
        print(type(error).__name__, error)
"""


def test_what_is_not_there(hub: LocalHub, api: HfApi, apart: Callable[..., str]) -> None:
    api.create_repo("org/other", repo_type="dataset")
    hub.storage.write("org/other", "data.csv", b"1")
    nothing, other = apart(REFUSED).splitlines()
    assert nothing.startswith("HubError org/nothing at 'main' cannot be read on the Hub")
    assert other.startswith("DataError org/other on the Hub has no manifest.json")
