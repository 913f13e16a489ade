"""Audio columns that `datasets` can encode without torchcodec and FFmpeg.

`datasets.Audio.encode_example` imports torchcodec before it looks at the value, also where the audio is not decoded and
is stored already. A stream encodes every row again once its columns are chosen, renamed or cast, so that all of this
would need FFmpeg. The columns that squtr makes hand stored audio on as it is; in files they are plain `Audio`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from datasets import Audio, Features


def undecoded(features: Features | None) -> Features | None:
    """Features that `datasets` has read back from a file, with undecoded `Audio` as `UndecodedAudio`."""
    if features is None:
        return None
    return Features(
        {
            name: UndecodedAudio(feature.sampling_rate)
            if isinstance(feature, Audio) and not feature.decode
            else feature
            for name, feature in features.items()
        }
    )


class UndecodedAudio(Audio):  # type: ignore[misc]  # datasets has no types
    """`Audio(decode=False)`, equal to it: `{"bytes", "path"}`, in memory, in Arrow and in parquet."""

    def __init__(self, sampling_rate: int | None = None) -> None:
        super().__init__(sampling_rate=sampling_rate, decode=False)

    def encode_example(self, value: Any) -> Any:
        """Stored audio as it is; anything else as `Audio` does it, which needs torchcodec."""
        if isinstance(value, dict) and value.get("bytes") is not None and "array" not in value:
            return {"bytes": value["bytes"], "path": value.get("path")}
        return super().encode_example(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Audio) and asdict(self) == asdict(other)

    __hash__ = None  # type: ignore[assignment]  # as Audio
