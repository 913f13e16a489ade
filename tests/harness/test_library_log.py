"""What libraries warn of: shown once for each component, with its name; what is harmless, or the user's own, is not."""

from __future__ import annotations

import logging
import threading
import warnings

import numpy as np
import pytest

from squtr.harness.components.library_log import quiet, shown_warnings
from squtr.harness.components.raised import sentences

pytest.importorskip("torch")
pytest.importorskip("transformers")


def without_rate() -> None:
    """A feature extractor that is not told the sampling rate takes any rate for its own."""
    from transformers import WhisperFeatureExtractor

    WhisperFeatureExtractor()(np.zeros(1600, np.float32))


def nested_tensors() -> None:
    import torch

    torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, norm_first=True), 1)


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("squtr: ")]


def test_wrong_use_of_a_library_is_shown_once_for_each_component(capsys: pytest.CaptureFixture[str]) -> None:
    for component in ("first", "second"):
        for _ in range(2):
            with shown_warnings(f"{component} of once"):
                without_rate()
                nested_tensors()
    found = lines_of(capsys)
    assert [line.split(" warns: ")[0] for line in found] == [
        "squtr: first of once: transformers",
        "squtr: first of once: torch",
        # Python itself gives torch's warning once for each place in its code.
        "squtr: second of once: transformers",
    ]
    assert "strongly recommended to pass the `sampling_rate` argument" in found[0]
    assert "norm_first" in found[1]


def test_a_quiet_block_with_a_name_shows_it_too_and_one_without_leaves_it(capsys: pytest.CaptureFixture[str]) -> None:
    with quiet("of a quiet block"):
        without_rate()
    assert [line.split(" It ")[0] for line in lines_of(capsys)] == ["squtr: of a quiet block: transformers warns:"]
    with quiet():
        without_rate()
    assert not lines_of(capsys)


def test_it_is_not_printed_the_usual_way_as_well(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = logging.getLogger("transformers")
    # Where the variable `CI` is set, the library passes its lines on to the root logger too.
    monkeypatch.setattr(logger, "propagate", False)
    with caplog.at_level(logging.WARNING), warnings.catch_warnings(record=True) as usual:
        logger.addHandler(caplog.handler)
        try:
            with shown_warnings("not twice"):
                without_rate()
                nested_tensors()
            assert not caplog.records
            without_rate()
            assert [record.name.split(".")[0] for record in caplog.records] == ["transformers"]
        finally:
            logger.removeHandler(caplog.handler)
    assert not usual


def test_every_boundary_of_components_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    with sentences("WhisperTranscriber.transcribe (whisper of a boundary) on 8 clips in 'en'"):
        without_rate()
    with sentences("a name on the texts of the self-check"):
        without_rate()
    assert [line.split(": transformers")[0] for line in lines_of(capsys)] == [
        "squtr: whisper of a boundary",
        "squtr: a name",
    ]


def test_harmless_lines_are_hidden_and_what_users_warn_of_goes_its_way(capsys: pytest.CaptureFixture[str]) -> None:
    from transformers import BertConfig, BertTokenizer  # noqa: F401 - sets the library's loggers up
    from transformers.utils import logging as library

    with pytest.warns(UserWarning, match="of a user"), shown_warnings("harmless"):
        tokenizers = library.get_logger("transformers.tokenization_utils_base")
        tokenizers.warning("Both `max_new_tokens` (=8) and `max_length`(=20) seem to have been set.")
        warnings.warn("of a user", stacklevel=1)
    assert not lines_of(capsys)


def test_other_threads_are_left_alone_and_all_is_put_back(capsys: pytest.CaptureFixture[str]) -> None:
    before = warnings.showwarning
    handlers = list(logging.getLogger().handlers), list(logging.getLogger("transformers").handlers)
    with shown_warnings("this thread"):
        other = threading.Thread(target=without_rate)
        other.start()
        other.join()
        assert not lines_of(capsys)
        with shown_warnings("inner"):
            without_rate()
    assert [line.split(": transformers")[0] for line in lines_of(capsys)] == ["squtr: this thread"]
    assert warnings.showwarning is before
    assert (list(logging.getLogger().handlers), list(logging.getLogger("transformers").handlers)) == handlers


def test_warnings_of_funasr_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("funasr")
    from funasr.utils.timestamp_tools import timestamp_sentence

    from squtr.harness.components.transcribers.funasr import _quiet

    with shown_warnings("funasr here"), _quiet():
        timestamp_sentence([1, 2], [[0, 100]], "one two")
        # What it was given, and no more.
        logging.getLogger().handle(
            logging.LogRecord("root", logging.WARNING, timestamp_sentence.__code__.co_filename, 1,
                              "trust_remote_code: False", (), None)
        )  # fmt: skip
    assert lines_of(capsys) == ["squtr: funasr here: funasr warns: length mismatch between punc and timestamp"]
