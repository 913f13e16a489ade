"""What models were derived from, as far as their names say."""

from __future__ import annotations

_FAMILIES = (
    "whisper", "sensevoice", "paraformer", "wav2vec", "hubert", "wavlm", "mms", "parakeet", "canary", "moonshine",
    "qwen", "seamless", "voxtral", "granite", "zipformer", "dolphin", "firered", "omnilingual",
)  # fmt: skip


def family_of(name: str) -> str:
    """The family of the model `name` (`backend:model@…`, or a part of it); its own name where none is known.

    >>> family_of("faster-whisper:distil-whisper/distil-large-v3@1"), family_of("funasr:iic/SenseVoiceSmall@3")
    ('whisper', 'sensevoice')
    >>> family_of("mine:a-b@2")
    'mine:a-b'
    """
    folded = name.lower()
    return next((family for family in _FAMILIES if family in folded), "") or folded.partition("@")[0]
