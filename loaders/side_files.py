"""The files of a data set of speech beside its shards."""

from __future__ import annotations

from .card import dataset_card
from .hub.evaluation_file import EVALUATION_NAME, evaluation_file
from .manifest import MANIFEST_NAME, Manifest
from .shard_checks import CARD_NAME


def side_contents(manifest: Manifest) -> dict[str, bytes]:
    """The files beside the shards, by name, the manifest last."""
    contents = {CARD_NAME: dataset_card(manifest).encode("utf-8")}
    if EVALUATION_NAME in manifest.side_files:
        contents[EVALUATION_NAME] = evaluation_file(manifest).encode("utf-8")
    return contents | {MANIFEST_NAME: manifest.to_json()}
