"""Rows with planned RIRs: alignment, levels, noise, the early part, and what the row says of them."""

import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from squtr.errors import AudioError, DataError, UnknownNameError, UsageError
from squtr.loaders.banks import load_rir_bank
from squtr.loaders.blocks import render_take
from squtr.loaders.mixing import power_ratio_db
from squtr.loaders.recipe import open_recipe as open_any
from squtr.loaders.records import CleanSpeech, Query
from squtr.loaders.rir_measures import measure_rir
from squtr.loaders.rirs.measured import measured_rir
from squtr.loaders.rows import speech_of
from squtr.loaders.sources import load_source

from .rirs_for_tests import RATE, make_rooms, make_speech, response


def decoded(audio):
    samples, rate = soundfile.read(io.BytesIO(audio), dtype="float64")
    assert rate == RATE
    return samples


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    root = tmp_path_factory.mktemp("pairs")
    return f"recorded:{make_speech(root / 'speech')}", str(make_rooms(root / "rooms"))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))


def open_recipe(source, rirs="simulated", *, conditions=("clean", "reverb"), **options):
    return open_any(
        source, rirs=rirs, conditions=conditions, **({"splits": True, "sample_rate": RATE, "rt60_bins": 2} | options)
    )


def rows_of(places, *conditions, **options):
    """By condition, all rows by id."""
    opened = open_recipe(*places, conditions=conditions, **options)
    found = {name: {} for name in conditions}
    for split in opened.recipe.splits:
        for subset, _ in opened.recipe.subsets:
            for take in opened.takes(subset, split):
                for rows in render_take(opened, list(opened.conditions.values()), take):
                    found[rows[0].condition] |= {row.id: row for row in rows}
    return found


def test_a_row_is_the_recording_and_its_convolution(places):
    rows = rows_of(places, "clean", "reverb")
    for row in rows["reverb"].values():
        dry = rows["clean"][row.utterance_id]
        recorded, _ = soundfile.read(f"{places[0][9:]}/{row.utterance_id}.flac", dtype="float64")
        clean, reverb = decoded(dry.audio), decoded(row.audio)
        assert np.abs(clean * 10 ** (-dry.gain_db / 20) - recorded).max() < 2 / 32768
        rir, _ = soundfile.read(f"{places[1]}/{row.rir_id}.wav", dtype="float64")
        whole = np.convolve(recorded, rir / math.sqrt(np.square(rir).sum()))
        assert row.onset_samples == 20 * int(row.rir_id[1:])
        expected = whole[row.onset_samples :]
        assert reverb.size == expected.size
        assert np.abs(reverb * 10 ** (-row.gain_db / 20) - expected).max() < 2 / 32768 * 10 ** (-row.gain_db / 20)
        assert (dry.duration_s, row.duration_s) == (clean.size / RATE, reverb.size / RATE)
        assert np.abs(reverb).max() <= 0.9001
        assert row.text
        assert row.id == f"{row.utterance_id}@{row.rir_id}"
        measures = measure_rir(rir.astype(np.float32), "r", RATE)
        assert row.rt60_s == measures.rt60_s
        assert row.edt_s == measures.edt_s
        assert row.drr_db == measures.drr_db
        assert math.isnan(row.source_rt60_s)
        assert math.isnan(row.snr_db)


class OneVoice:
    """A source with one utterance's samples for all of its queries."""

    name, version, license, subsets = "one", "1", "CC0-1.0", {"s": "en"}

    def __init__(self, samples):
        self.samples = samples

    def queries(self, subset):
        return [Query(f"u{n}", subset, "en", f"text {n}") for n in range(4)]

    def documents(self, subset):
        return []

    def qrels(self, subset):
        return []

    def speech(self, query):
        return self.speech_at(query, 24_000)

    def speech_at(self, query, rate):
        assert rate == RATE
        return CleanSpeech(self.samples)


class OneRir:
    """Two RIRs that are the same."""

    name, version, license = "one", "1", "CC0-1.0"

    def __init__(self, rir):
        self.rir = rir

    def rirs(self):
        return ("a", "b")

    def read_at(self, rir_id, rate):
        assert rate == RATE
        return self.rir

    def read(self, rir_id):
        raise AssertionError(rir_id)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32),
    delay=st.integers(0, 3000),
    rt60_s=st.floats(0.15, 0.8),
    direct=st.floats(10.0, 30.0),
    scale=st.floats(1e-3, 1e3),
)
def test_alignment_never_moves_the_reference(seed, delay, rt60_s, direct, scale):
    """Whatever the RIR's delay: the clean clip keeps its bytes, and the reverberant one begins with it."""
    from squtr.loaders import recipe as module

    dry = (np.random.default_rng(seed).standard_normal(6000) * 0.1).astype(np.float32)
    rir = OneRir((scale * response(seed, rt60_s, delay=delay, direct=direct)).astype(np.float32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "load_rir_bank", lambda *_: rir)
        patch.setattr(
            module,
            "measure_rirs",
            lambda bank, rate, **_: tuple(measured_rir(bank, i, bank.read_at(i, rate), rate) for i in bank.rirs()),
        )
        opened = open_recipe(OneVoice(dry))
    take = opened.takes("s")[0]
    (clean_row,), (row,) = render_take(opened, list(opened.conditions.values()), take)
    clean, reverb = decoded(clean_row.audio), decoded(row.audio)
    assert np.array_equal(clean, np.rint(dry * 32768.0) / 32768.0)
    assert (row.text, row.onset_samples) == (take.query.text, delay)
    lags = np.correlate(reverb[:4000], clean[100:3900], "valid")
    assert int(np.argmax(lags)) == 100


def test_every_rir_of_an_utterance_has_the_same_noise(places):
    by_utterance = {}
    for row in rows_of(places, "clean", "reverb_snr_5", rirs_per_utterance=2)["reverb_snr_5"].values():
        by_utterance.setdefault(row.utterance_id, []).append(row)
    for first, second in by_utterance.values():
        assert (first.noise_id, first.noise_offset_s) == (second.noise_id, second.noise_offset_s)
        assert first.rir_id != second.rir_id
        assert first.audio != second.audio


@pytest.mark.parametrize("level", [-3.0, 10.0])
def test_noise_is_set_against_the_reverberant_speech(places, level):
    rows = rows_of(places, "reverb", f"reverb_snr_{level:g}")
    for row in rows[f"reverb_snr_{level:g}"].values():
        other = rows["reverb"][row.id]
        speech = decoded(other.audio) * 10 ** (-other.gain_db / 20)
        noise = decoded(row.audio) * 10 ** (-row.gain_db / 20) - speech
        found = power_ratio_db(float(np.square(speech).mean()), float(np.square(noise).mean()))
        assert found == pytest.approx(level, abs=0.02)
        assert row.snr_db == level
        assert row.noise_family in row.noise_id


def test_the_early_part_ends_50_ms_after_the_direct_path(places):
    rows = rows_of(places, "clean", "reverb", "early_reverb")
    for row in rows["early_reverb"].values():
        other = rows["reverb"][row.id]
        clean = rows["clean"][row.utterance_id]
        assert row.duration_s == pytest.approx(clean.duration_s + 0.05 - 1 / RATE, abs=1e-9)
        # The RIR is what it was: measures and stratum are those of the whole.
        assert (row.rt60_s, row.c50_db, row.stratum) == (other.rt60_s, other.c50_db, other.stratum)


def test_sources_without_their_own_rate_are_resampled(places):
    source = load_source("mini")
    query = source.queries("mini-es")[0]
    samples = speech_of(source, query, RATE).samples
    assert samples.size == math.ceil(source.speech(query).samples.size * 2 / 3)

    class Plain(OneVoice):
        speech_at = None

        def speech(self, query):
            return CleanSpeech(self.samples, "who")

    plain = speech_of(Plain(np.sin(np.arange(2400, dtype=np.float32))), Query("u", "s", "en", "t"), RATE)
    assert (plain.samples.size, plain.speaker) == (1600, "who")
    opened = open_recipe(OneVoice(np.zeros(100, dtype=np.float32)))
    with pytest.raises(AudioError, match=r"query 'u\d' \(s\) is silent"):
        render_take(opened, list(opened.conditions.values()), opened.takes("s")[0])


def test_the_recipe_follows_what_decides_the_bytes(places):
    first = open_recipe(*places).recipe
    assert open_recipe(*places).recipe == first
    assert first.as_dict() == json.loads(json.dumps(first.as_dict()))
    assert first.fingerprint == replace(first).fingerprint
    others = [
        {"seed": 1},
        {"utterances": 6},
        {"conditions": ["clean", "early_reverb"]},
        {"conditions": ["clean", "reverb_snr_3"]},
        {"rt60_bins": 3},
        {"stratify": "rt60+drr"},
        {"sample_rate": 24_000},
        {"splits": False, "stratify": "rt60"},
        {"benchmark": "mine"},
    ]
    prints = {open_recipe(*places, **option).recipe.fingerprint for option in others}
    assert len(prints | {first.fingerprint}) == len(others) + 1


def test_rirs_are_measured_once(places, monkeypatch):
    import squtr.loaders.rirs.measured as module

    first = open_recipe(*places)
    with monkeypatch.context() as patch:
        patch.setattr(module, "measured_rir", None)
        assert repr(open_recipe(*places).measured) == repr(first.measured)
    (kept,) = (module.squtr_home() / "rir_measures").iterdir()
    content = kept.read_bytes()
    kept.write_text("[{}]")
    assert repr(open_recipe(*places).measured) == repr(first.measured)
    assert kept.read_bytes() == content


def test_rirs_without_a_known_rt60_can_be_left_out(tmp_path):
    rooms = make_rooms(tmp_path / "rooms", 4)
    for number in range(3):
        pulse = np.zeros(2000, dtype=np.float32)
        pulse[[10, 500 + number]] = 1.0, 0.5
        soundfile.write(rooms / f"x{number}.wav", pulse, RATE)
    speech = f"recorded:{make_speech(tmp_path / 'speech')}"
    opened = open_recipe(speech, str(rooms))
    assert [row.name for row in opened.plan.table()][-1] == "rt60_unknown"
    pulses = [rir for rir in opened.measured if rir.rir_id.startswith("x")]
    assert all(dict(rir.reasons)["rt60_s"] for rir in pulses)
    assert len(open_recipe(speech, str(rooms), known_rirs_only=True).measured) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stratify": "rt6"}, "Did you mean 'rt60'"),
        ({"languages": ["ende"]}, "language"),
        ({"rt60_bins": 0}, "number of bins is 0"),
        ({"rirs_per_utterance": 0}, "0 RIRs per utterance"),
        ({"sample_rate": 16}, "sample rate is 16 Hz"),
        ({"conditions": ["snr_5"]}, "no condition has a RIR"),
        ({"level": "wole", "conditions": ["reverb_snr_3"]}, "Did you mean 'whole'"),
    ],
)
def test_wrong_choices(places, options, message):
    with pytest.raises(UsageError, match=message):
        open_recipe(*places, **options)


def test_rir_mega_is_written_with_its_split(home):
    from squtr.loaders.banks.catalog import bank_folder

    make_rir_mega(bank_folder("rir_mega"))
    assert load_rir_bank("rir_mega:train").name == load_rir_bank("rir_mega?split=train").name == "rir_mega?split=train"
    assert len(load_rir_bank("rir_mega:train").rirs()) == 12
    with pytest.raises(DataError):
        load_rir_bank("rir_mega:elsewhere")
    with pytest.raises(UnknownNameError, match="simulated"):
        load_rir_bank("simulatd")


def make_rir_mega(folder):
    """A small RIR-Mega: two responses per room, two tables of the same name, metrics as Python text with nan."""
    import csv

    for place, numbers in (("data", range(16)), ("data-mini", range(4))):
        rows = []
        for number in numbers:
            name = f"rir_{number:06d}"
            (folder / place / "linear").mkdir(parents=True, exist_ok=True)
            path = folder / place / "linear" / f"{name}.wav"
            if place == "data":
                soundfile.write(path, response(number, 0.2 + 0.05 * number), RATE, subtype="FLOAT")
            else:
                path.write_bytes((folder / "data" / "linear" / path.name).read_bytes())
            metrics = f"{{'rt60': {0.2 + 0.05 * number if number else 'nan'}, 'drr_db': nan, 'c50_db': {number}.5}}"
            split = "train" if number < 12 else "test"
            rows.append(
                {"id": name, "family": "linear", "split": split, "fs": RATE, "wav": f"{place}/linear/{name}.wav"}
                | {"metrics": metrics, "seed_room": number // 2}
            )
        table = folder / ("metadata" if place == "data" else "data-mini/metadata") / "metadata.csv"
        table.parent.mkdir(parents=True)
        with table.open("w", newline="") as out:
            writer = csv.DictWriter(out, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


def test_rir_mega_with_its_own_values_and_rooms(places):
    from squtr.loaders.banks.catalog import bank_folder

    make_rir_mega(bank_folder("rir_mega"))
    opened = open_recipe(places[0], "rir_mega:train")
    assert opened.recipe.rirs[0].name == "rir_mega?split=train"
    assert opened.recipe.rirs[0].license == "CC-BY-NC-4.0"
    ((subset, _),) = opened.recipe.subsets
    rows = {
        split: [render_take(opened, [opened.condition("reverb")], take)[0][0] for take in opened.takes(subset, split)]
        for split in opened.recipe.splits
    }
    rooms = {split: {row.room_id for row in rows[split]} for split in rows}
    assert not rooms["validation"] & rooms["test"]
    for row in (*rows["validation"], *rows["test"]):
        number = int(row.rir_id[4:])
        assert number < 12
        assert row.room_id == f"rir_mega_room_{number // 2}"
        assert math.isnan(row.source_rt60_s) if number == 0 else row.source_rt60_s == 0.2 + 0.05 * number
        assert math.isnan(row.source_drr_db)
        assert row.source_c50_db == number + 0.5
        # Ours is measured, whatever the publisher says.
        assert row.rt60_s == pytest.approx(0.2 + 0.05 * number, rel=0.05)
    other = bank_folder("rir_mega") / "metadata" / "metadata.csv"
    other.write_text(other.read_text().replace("'c50_db': 9.5", "'c50_db': 4.5"))
    assert open_recipe(places[0], "rir_mega:train").recipe.fingerprint != opened.recipe.fingerprint


def test_a_folder_may_say_which_rooms_its_responses_are_of(places, tmp_path):
    rooms = make_rooms(tmp_path / "rooms", 8)
    lines = [f"r{n:02d}.wav,hall {n // 2},{'' if n else 0.7}\n" for n in range(7)]
    (rooms / "rooms.csv").write_text("file,room,rt60_s\n" + "".join(lines))
    opened = open_recipe(places[0], str(rooms))
    known = {rir.rir_id: (rir.room_id, rir.source_rt60_s) for rir in opened.measured}
    assert known["r00"] == ("hall 0", 0.7)
    assert known["r01"][0] == "hall 0"
    assert math.isnan(known["r01"][1])
    assert known["r07"][0] == "r07"
    splits = {split: {known[rir_id][0] for rir_id in opened.plan.uses(split)} for split in ("validation", "test")}
    assert not splits["validation"] & splits["test"]
    for text, message in (
        ("file,room\nr99.wav,x\n", r"line 2: 'r99.wav' is no response"),
        ("file,room\nr01.wav,x\nr01,y\n", "line 3: 'r01' occurs twice"),
        ("file,rt60_s\nr01.wav,long\n", "rt60_s 'long' of 'r01'"),
    ):
        (rooms / "rooms.csv").write_text(text)
        with pytest.raises(DataError, match=message):
            open_recipe(places[0], str(rooms))
