"""Transcribers: audio to text."""

from __future__ import annotations

from collections.abc import Mapping

from ..table import BackendSpec, table_of

_HERE = "harness.components.transcribers"
TRANSCRIBERS: Mapping[str, BackendSpec] = table_of(
    BackendSpec("faster-whisper", f"{_HERE}.faster_whisper:FasterWhisperTranscriber", "asr", True),
    BackendSpec("transformers", f"{_HERE}.transformers:TransformersTranscriber", "torch", True),
    BackendSpec("ctc", f"{_HERE}.ctc:CTCTranscriber", "torch", True),
    BackendSpec("openai-whisper", f"{_HERE}.openai_whisper:OpenAIWhisperTranscriber", "openai-whisper", True),
    BackendSpec("funasr", f"{_HERE}.funasr:FunASRTranscriber", "funasr", True),
    BackendSpec("qwen-asr", f"{_HERE}.qwen:QwenASRTranscriber", "qwen-asr", True),
    BackendSpec("glm-asr", f"{_HERE}.glm:GLMASRTranscriber", "torch", True),
    BackendSpec("server", f"{_HERE}.server:ServerTranscriber", "openai", True),
    BackendSpec("transcripts", f"{_HERE}.files:TranscriptsFile", "", True),
)

USUAL_TRANSCRIBERS: Mapping[str, str] = dict.fromkeys(
    (
        "whisper-tiny",
        "whisper-tiny.en",
        "whisper-base",
        "whisper-base.en",
        "whisper-small",
        "whisper-small.en",
        "whisper-medium",
        "whisper-large-v2",
        "whisper-large-v3",
        "whisper-large-v3-turbo",
    ),
    "faster-whisper",
)
"""Models that are known by their bare name, with the backend that it stands for."""
