"""`eval.yaml`: what makes a data set on the Hub a benchmark that `mteb` evaluates.

The form is the Hub's (documentation of evaluation results: `name`, `description`, `evaluation_framework`, and `tasks`
with `id`, `config`, `split`), the ids are built as mteb builds them: a task, and `<task>_<config>_<split>`.
"""

from __future__ import annotations

import json
from importlib.resources import files
from string import Template

from ..manifest import Manifest
from ..origins import joined, origins

EVALUATION_NAME = "eval.yaml"
SPLIT = "test"

_PUBLISHED = {
    "fiqa": "FiQA", "hotpotqa": "HotpotQA", "nq": "NQ", "medicalretrieval": "MedicalRetrieval",
    "duretrieval": "DuRetrieval", "t2retrieval": "T2Retrieval",
}  # fmt: skip


def task_name(subset: str) -> str:
    """The name of the mteb task of a subset: unchanged capitals for the published ones, words joined for others.

    >>> task_name("t2retrieval"), task_name("mini-zh")
    ('SQuTRT2Retrieval', 'SQuTRMiniZh')
    """
    own = "".join(word[:1].upper() + word[1:] for word in subset.split("-"))
    return f"SQuTR{_PUBLISHED.get(subset, own)}"


def control_name(subset: str) -> str:
    """The mteb task with the typed queries of a subset, the upper bound.

    >>> control_name("fiqa")
    'SQuTRFiQAText'
    """
    return f"{task_name(subset)}Text"


def evaluation_file(manifest: Manifest) -> str:
    """The content of `eval.yaml` for a built data set: each subset with a corpus, under each condition, is a task."""
    lines = []
    for subset in manifest.subsets:
        if not manifest.below(f"corpus/{subset}"):
            continue
        lines.append(f"- id: {json.dumps(task_name(subset))}")
        for condition in manifest.conditions:
            config = f"{subset}_{condition}"
            lines += [
                f"- id: {json.dumps(f'{task_name(subset)}_{config}_{SPLIT}')}",
                f"  config: {json.dumps(config)}",
                f"  split: {SPLIT}",
            ]
    languages = ", ".join(dict.fromkeys(manifest.subsets.values()))
    description = (
        f"Retrieval with spoken queries ({languages}) under the conditions {', '.join(manifest.conditions)}: how much"
        " is lost when a query is spoken, in noise and with reverberation? Main score: nDCG@10 per condition."
    )
    template = Template((files("squtr") / "dataset_cards" / "eval.yaml.template").read_text(encoding="utf-8"))
    # A JSON string is a YAML string, whatever is in it.
    return template.substitute(
        name=json.dumps(f"SQuTR ({joined(source.name for source in origins(manifest.recipe))})", ensure_ascii=False),
        description=json.dumps(description, ensure_ascii=False),
        tasks="\n".join(lines),
    )
