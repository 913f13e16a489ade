"""Questions and replies, joined by id: what both kinds of question share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .....errors import DataError
from .labels import ItemLabels


@dataclass(frozen=True, slots=True)
class Reply:
    """What a system replied to one question; `text` None if it did not.

    `order` says which of the item's options stood in each place where they were shown in another order: (2, 0, 1) is
    the third option as A, the first as B, the second as C. `missing_audio`: there was nothing to ask about.
    """

    id: str
    text: str | None
    order: tuple[int, ...] | None = None
    missing_audio: bool = False


class Item(Protocol):
    """A question: its id, its labels, and whether its audio is missing."""

    @property
    def id(self) -> str: ...
    @property
    def labels(self) -> ItemLabels: ...
    @property
    def missing_audio(self) -> bool: ...


def join_replies(items: Sequence[Item], replies: Sequence[Reply]) -> tuple[dict[str, list[Reply]], set[str]]:
    """The replies of each item, and the ids of the items whose audio is missing.

    Raises `DataError` for an item twice, an unknown item, two replies in one order, or a reply without audio.
    """
    joined: dict[str, list[Reply]] = {}
    for item in items:
        if item.id in joined:
            raise DataError(f"item {item.id!r} is there twice.", hint="Give each item once.")
        joined[item.id] = []
    missing = {item.id for item in items if item.missing_audio}
    for reply in replies:
        if reply.id not in joined:
            raise DataError(
                f"there is no item {reply.id!r}, but a reply to it.", hint="Check that the ids are the same."
            )
        if any(other.order == reply.order for other in joined[reply.id]):
            raise DataError(
                f"item {reply.id!r} has two replies in one order.", hint="Give one reply per item and order."
            )
        joined[reply.id].append(reply)
        if reply.missing_audio:
            missing.add(reply.id)
    for id_ in missing:
        if any(reply.text is not None for reply in joined[id_]):
            raise DataError(
                f"item {id_!r} has a reply, but its audio is missing.", hint="Give either a reply or `missing_audio`."
            )
    return joined, missing


def cluster_labels(clusters: Mapping[str, str] | None, ids: Sequence[str]) -> list[str] | None:
    """The label of each id. Raises `DataError` naming an id without one."""
    if clusters is None:
        return None
    absent = next((id_ for id_ in ids if id_ not in clusters), None)
    if absent is not None:
        raise DataError(f"id {absent!r} has no cluster.", hint="Give a label for every id.")
    return [clusters[id_] for id_ in ids]
