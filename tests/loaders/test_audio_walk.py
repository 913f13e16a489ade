"""Which files of a folder are its audio."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from squtr.errors import AudioError, DataError
from squtr.loaders.banks import load_noise_bank
from squtr.loaders.left_out import left_out_of
from squtr.loaders.questions.audio_folder import AudioFolder

from .test_audio_files import contained


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "noises"
    (root / "cafe").mkdir(parents=True)
    noise = np.random.default_rng(0).standard_normal(4_800) * 0.1
    soundfile.write(root / "cafe" / "a.wav", noise, 24_000)
    (root / "README.txt").write_text("text")
    return root


def test_links_that_lead_back_up_are_not_followed(folder: Path) -> None:
    (folder / "cafe" / "up").symlink_to("..", target_is_directory=True)
    (folder / "cafe" / "same").symlink_to(folder / "cafe", target_is_directory=True)
    other = folder.parent / "other"
    other.mkdir()
    (other / "back").symlink_to(folder, target_is_directory=True)
    soundfile.write(other / "b.wav", np.random.default_rng(1).standard_normal(4_800) * 0.1, 24_000)
    (folder / "linked").symlink_to(other, target_is_directory=True)
    assert [info.id for info in load_noise_bank(folder).noises()] == ["cafe/a", "linked/b"]
    assert list(AudioFolder(folder).files) == ["a", "b"]


def test_other_formats_beside_wav_files_are_read_or_counted(folder: Path) -> None:
    (folder / "b.m4a").write_bytes(contained("ipod", "alac"))
    (folder / "c.webm").write_bytes(contained("webm", "libopus"))
    for name in ("d.wv", "cafe/e.ape", "notes.json"):
        (folder / name).write_bytes(b"nothing")
    bank = load_noise_bank(folder)
    assert [info.id for info in bank.noises()] == ["b", "c", "cafe/a"]
    assert {bank.read(id_).size for id_ in ("b", "c")} == {25_001}
    for opened in (bank, AudioFolder(folder)):
        assert [str(entry) for entry in left_out_of(opened)] == [
            "2 audio files in formats that are not read (d.wv, cafe/e.ape)"
        ]


def test_questions_take_what_was_converted_and_name_what_is_not_read(folder: Path) -> None:
    (folder / "a.m4a").write_bytes(b"the original")
    (folder / "d.wv").write_bytes(b"nothing")
    audio = AudioFolder(folder)
    assert audio.path("a") == folder / "cafe" / "a.wav"
    with pytest.raises(AudioError, match=r"is there as d\.wv, which is not read"):
        audio.path("d")
    for suffix in (".mp4", ".webm"):
        (folder / f"q{suffix}").write_bytes(b"two")
    with pytest.raises(DataError, match="have the same id 'q'"):
        _ = AudioFolder(folder).files


def test_a_container_that_is_none_is_named(folder: Path) -> None:
    (folder / "b.m4a").write_bytes(b"this is text, not audio")
    with pytest.raises(AudioError, match=r"noise .*b\.m4a cannot be read as audio"):
        load_noise_bank(folder).read("b")
