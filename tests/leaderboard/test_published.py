"""Published numbers: all of them, as printed, with their errata."""

from __future__ import annotations

import pytest

from squtr.leaderboard.entry import difference, from_json, to_json
from squtr.leaderboard.published import published_entries, rir_mega_entries, squtr_entries, squtr_values
from squtr.leaderboard.site.tables import groups, tables

ENTRIES = {entry.system: entry for entry in squtr_entries()}


def test_every_number_is_there_once() -> None:
    values = list(squtr_values())
    assert len(values) == 2070
    for v in values:
        name = v.retriever if v.retriever.startswith("Omni") else f"{v.transcriber} + {v.retriever}"
        entry, config = ENTRIES[name], f"{v.subset}_{v.condition}"
        shown = entry.scores[config][v.metric].value
        assert shown == v.value or f"prints {v.value:.4f}" in entry.errata[f"{config}/{v.metric}"]


@pytest.mark.parametrize(
    ("system", "drops"),
    [
        ("BM25", (5.9, 7.3)),
        ("BGE-M3-dense", (5.6, 6.9)),
        ("EmbeddingGemma-300M", (5.2, 6.6)),
        ("Qwen3-Embedding-8B", (5.1, 5.9)),
        ("Omni-Embed-Nemotron-3B", (8.3, 13.6)),
    ],
)
def test_drops_are_those_recomputed_from_the_tables(system: str, drops: tuple[float, float]) -> None:
    for language, transcriber, drop in zip(("en", "zh"), ("Whisper-Large-v3", "Paraformer-Large"), drops, strict=True):
        entry = ENTRIES[system if system.startswith("Omni") else f"{transcriber} + {system}"]
        lost = entry.losses[f"{language}_high_noise"]["clean"]["ndcg_at_10"].relative.value
        assert lost is not None
        assert round(100 * lost, 1) == drop


def test_errata_stand_on_their_numbers() -> None:
    sense = ENTRIES["SenseVoice-Small + BM25"]
    found = [sense.scores[f"en_{c}"]["ndcg_at_10"].value for c in ("clean", "low_noise", "medium_noise", "high_noise")]
    assert [round(v or 0, 4) for v in found] == [0.2867, 0.2856, 0.2809, 0.2639]
    assert "Table 6 prints .3759" in sense.errata["en_clean/ndcg_at_10"]
    medical = ENTRIES["Paraformer-Large + BM25"]
    scores = medical.scores["medicalretrieval_high_noise"]
    assert (scores["recall_at_10"].value, scores["ndcg_at_10"].value) == (0.2240, 0.2570)
    assert "impossible" in medical.errata["medicalretrieval_high_noise/recall_at_10"]


def test_the_contradictory_sets_are_outside_the_ranking_and_never_share_a_table() -> None:
    entries = rir_mega_entries()
    assert not any(entry.ranked for entry in entries)
    tiny = [entry for entry in entries if entry.system == "whisper-tiny"]
    losses = [entry.losses["en_reverb"]["clean"]["wer"].absolute.value for entry in tiny]
    assert losses == pytest.approx([0.0107, 0.155])
    assert difference(*tiny)


def test_published_losses_without_a_score_are_shown() -> None:
    entries = rir_mega_entries()
    made = [table for table in tables(groups(entries)) if table.place.condition == "reverb"]
    assert sorted(row.entry.id for table in made for row in table.rows) == sorted(entry.id for entry in entries)
    assert all(row.losses["clean"].absolute.value for table in made for row in table.rows)
    assert sum(row.score.value is not None for table in made for row in table.rows) == 1


def test_all_are_marked_and_survive_json() -> None:
    for entry in published_entries():
        assert entry.who == "published"
        assert "not re-scored" in entry.notes[0]
        assert from_json(to_json(entry)) == entry
    assert len({entry.id for entry in published_entries()}) == len(published_entries())
