"""What all models have that systems of the harness become: metadata, the task's language, audio as a model takes it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import AudioError, SqutrWarning
from ...loaders.audio import resample
from ...loaders.records import Samples
from ..components.checked import enhance
from ..evaluation.outage import refuse_share
from ..protocols import FrontEnd
from .catalog import LANGUAGE_NAMES, language_of
from .meta import Description, model_fields
from .versions import load_bridge


class Model:
    def __init__(self, description: Description, meta: Mapping[str, Any] | None) -> None:
        self.description = description
        self._meta: Any = load_bridge().model_meta({**model_fields(description), **dict(meta or {})})

    @property
    def mteb_model_meta(self) -> Any:
        return self._meta


def languages_of(part: Any) -> list[str]:
    return [language for language in LANGUAGE_NAMES if part.supports(language)]


def task_language(task_metadata: Any, hf_subset: str) -> str:
    """The language code of a subset of a task. Raises `UsageError` as `language_of`."""
    tags = task_metadata.eval_langs
    return language_of(tags.get(hf_subset, []) if isinstance(tags, Mapping) else tags)


def mono(array: Any) -> Samples:
    """(T,) float32. Raises `AudioError` for several channels: they are never averaged, because they may cancel."""
    samples = np.asarray(array, dtype=np.float32)
    if samples.ndim > 1 and samples.shape[0] == 1:
        samples = samples[0]
    if samples.ndim != 1:
        raise AudioError(f"a clip has shape {samples.shape} instead of (T,).", hint="Choose one channel.")
    return samples


def tell_failed(failed: Mapping[str, str], n: int, name: str, max_failed: float) -> None:
    """Warn of spoken queries that failed (id to why) of `n`, as they score 0; too many raise `ModelError`."""
    what = f"spoken queries failed for {name}"
    refuse_share(failed, n, what, max_failed, "give mteb_model(…, max_failed={share:g})")
    if failed:
        id_, why = next(iter(failed.items()))
        warnings.warn(
            f"{len(failed)} of {n} {what} and find nothing; the first is {id_!r}: {why}", SqutrWarning, stacklevel=2
        )


def model_input(samples: Samples, rate: int, front_end: FrontEnd | None, target: int) -> Samples:
    """(T,) float32 at `rate` Hz as a model takes it: through the front end, then at `target` Hz.

    Raises what the front end raises, and `ModelError` if it changes the clip's length.
    """
    if front_end is None:
        return resample(samples, rate, target)
    given = resample(samples, rate, front_end.sample_rate)
    (enhanced,) = enhance(front_end, [given])
    return resample(enhanced, front_end.sample_rate, target)
