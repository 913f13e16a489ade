"""The files that people score, in UTF-8: transcripts, judgments, rankings, questions, replies, per-item scores."""

from .items import read_items, write_items
from .questions import read_aif_items, read_mcqa_items, read_replies
from .rankings import RANKING_FORMATS, read_qrels, read_run
from .texts import TEXT_FORMATS, read_texts

__all__ = [
    "RANKING_FORMATS", "TEXT_FORMATS", "read_aif_items", "read_items", "read_mcqa_items", "read_qrels",
    "read_replies", "read_run", "read_texts", "write_items",
]  # fmt: skip
