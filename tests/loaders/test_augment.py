"""Clean speech mixed anew in every epoch."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
import soundfile
from datasets import Dataset, IterableDataset

import squtr
from squtr.errors import DataError, UsageError
from squtr.loaders.audio import decode_audio
from squtr.loaders.banks import load_noise_bank, load_rir_bank
from squtr.loaders.mixing import power_ratio_db
from squtr.loaders.splits import noises_of, rirs_of

CONDITIONS = ("clean", "snr", "reverb_snr", "high_noise")
ROWS = 8


@pytest.fixture(scope="module")
def clean() -> Dataset:
    return squtr.load_dataset("en_clean", source="mini", limit=ROWS)  # type: ignore[return-value]


def transform(**options: object) -> squtr.NoisyTransform:
    return squtr.NoisyTransform(**{"conditions": CONDITIONS, **options})  # type: ignore[arg-type]


def digests(rows: list[dict[str, object]]) -> dict[str, bytes]:
    return {str(row["id"]): row["audio"]["bytes"] for row in rows}  # type: ignore[index]


def test_a_row_is_the_same_in_any_order_batch_and_way(clean: Dataset) -> None:
    given = transform()
    whole = digests(list(clean.with_transform(given)))
    assert len(set(whole.values())) == ROWS
    alone = clean.with_transform(transform())
    assert {row["id"]: row["audio"]["bytes"] for row in (alone[n] for n in reversed(range(ROWS)))} == whole
    assert digests(list(clean.map(transform(), batched=True, batch_size=3))) == whole
    stream = clean.to_iterable_dataset().map(transform(), batched=True, batch_size=2)
    assert isinstance(stream, IterableDataset)
    assert digests(list(stream)) == whole
    assert digests(list(clean.with_transform(pickle.loads(pickle.dumps(given))))) == whole


def test_workers_of_a_loader_give_the_same(clean: Dataset) -> None:
    from torch.utils.data import DataLoader

    rows = clean.with_transform(transform())
    loader = DataLoader(rows, batch_size=2, num_workers=2, collate_fn=list)  # type: ignore[arg-type, var-annotated]
    assert digests([row for batch in loader for row in batch]) == digests(list(rows))


def test_epochs_draw_anew_and_are_repeated(clean: Dataset) -> None:
    given = transform(conditions=("snr",))
    rows = clean.with_transform(given)
    first = list(rows)
    given.set_epoch(1)
    second = list(rows)
    given.set_epoch(0)
    assert digests(list(rows)) == digests(first)
    assert all(a["audio"]["bytes"] != b["audio"]["bytes"] for a, b in zip(first, second, strict=True))
    for column in ("noise_offset_s", "snr_db"):
        assert [row[column] for row in first] != [row[column] for row in second]
    assert digests(list(clean.with_transform(transform(conditions=("snr",), seed=1)))) != digests(first)


def test_the_level_is_the_one_that_the_row_says(clean: Dataset) -> None:
    rows = list(clean.with_transform(transform(conditions=("snr",), snr_db=(3.0, 9.0))))
    for before, row in zip(clean, rows, strict=True):
        speech, _ = decode_audio(before["audio"]["bytes"], "clean")
        mixed, rate = decode_audio(row["audio"]["bytes"], "mixed")
        noise = mixed / 10.0 ** (row["gain_db"] / 20.0) - speech
        measured = power_ratio_db(float(np.square(speech).sum()), float(np.square(noise).sum()))
        assert measured == pytest.approx(row["snr_db"], abs=0.05)
        assert 3.0 <= row["snr_db"] <= 9.0 and row["condition"] == f"snr_{row['snr_db']:g}"
        assert (row["id"], row["text"], row["utterance_id"]) == (before["id"], before["text"], before["utterance_id"])
        assert rate == 24_000


def test_only_the_split_s_noises_and_rooms_are_drawn(clean: Dataset) -> None:
    noises = {info.id for info in noises_of(load_noise_bank("synthetic"), "train").noises()}
    rirs = set(rirs_of(load_rir_bank("simulated"), "train"))
    given = transform(conditions=("reverb_snr",))
    rows = clean.with_transform(given)
    drawn: list[tuple[str, str]] = []
    for epoch in range(4):
        given.set_epoch(epoch)
        drawn += [(row["noise_id"], row["rir_id"]) for row in rows]
    assert {noise for noise, _ in drawn} <= noises and {rir for _, rir in drawn} <= rirs
    everything = transform(conditions=("reverb_snr",), split="")
    others: set[str] = set()
    for epoch in range(4):
        everything.set_epoch(epoch)
        others |= {row["noise_id"] for row in clean.with_transform(everything)}
    assert others - noises


def test_rows_of_any_kind_are_mixed() -> None:
    buffer = io.BytesIO()
    soundfile.write(buffer, 0.1 * np.random.default_rng(0).standard_normal(8000), 16_000, format="FLAC")
    rows = Dataset.from_list([{"id": "a", "audio": {"bytes": buffer.getvalue(), "path": None}, "label": 3}])
    (row,) = list(rows.with_transform(transform(conditions=("low_noise",))))
    assert (row["label"], row["snr_db"], row["id"]) == (3, 20.0, "a")
    assert decode_audio(row["audio"]["bytes"], "a")[1] == 16_000
    assert transform()({"id": [], "audio": []})["audio"] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conditions": ()}, "no list of conditions"),
        ({"conditions": "snr_5"}, "no list of conditions"),
        ({"conditions": ("snr_x",)}, "unknown condition"),
        ({"split": "training"}, "no split 'training'"),
        ({"snr_db": (9.0, 3.0)}, "from 9 to 3 dB"),
    ],
)
def test_wrong_choices_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        transform(**options)


def test_rows_that_cannot_be_mixed_are_named() -> None:
    with pytest.raises(DataError, match="without the column audio"):
        transform()({"id": ["a"]})
    with pytest.raises(DataError, match="the row 'a' has no bytes of audio"):
        transform()({"id": ["a"], "audio": [{"bytes": None, "path": "a.flac"}]})
