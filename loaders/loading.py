"""`squtr.load_dataset`: the same as `datasets.load_dataset("squtr", …)`, with plain errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import SqutrError
from .conditions import STANDARD_CONDITIONS, config_names
from .sources import load_source

if TYPE_CHECKING:
    import datasets


def load_dataset(
    config: str,
    *,
    source: str | None = None,
    split: str | None = "test",
    streaming: bool = False,
    num_proc: int | None = None,
    **options: Any,
) -> datasets.Dataset | datasets.IterableDataset | datasets.DatasetDict | datasets.IterableDatasetDict:
    """Load a config, mixed on the fly from `source` (a name or a folder) or from what `squtr build` made.

    Options: `noise`, `rirs` (bank names or folders), `channel`, `seed`, `level` ("whole" or "active"), `limit` (queries
    per subset, 0 for all), `sample_rate`, those of a plan of RIRs (`stratify`, `rirs_per_utterance`, `utterances`,
    `splits`, … as in `recipe.open_recipe`), and whatever `datasets.load_dataset` takes (`cache_dir`,
    `keep_in_memory`, …). `source` may also be a folder that `squtr build` wrote. With a plan, the config `rirs` has the
    RIRs and their measures.

    The configs `questions` (all questions), `questions_mcqa`, `questions_aif`, `questions_comparative`,
    `questions_spoken` and `questions_non_normative` have the split test and take `source` alone: "mini", a folder with
    questions and audio (see `questions.data`), a published set that was fetched, or None for what was built into
    `$SQUTR_HOME/questions`. `audio` comes undecoded, as `{"bytes", "path"}`: a complete mono FLAC file.

    Raises `UnknownNameError` (suggesting the nearest) for a wrong name, `DataError` or `AudioError` for unusable input.
    """
    import datasets
    from datasets.exceptions import DatasetGenerationError

    from .hook import install

    install()
    try:
        return datasets.load_dataset(
            "squtr", config, source=source, split=split, streaming=streaming, num_proc=num_proc, **options
        )
    except DatasetGenerationError as error:
        # `datasets` wraps what its builders raise; our own errors say more alone.
        cause = error.__cause__
        if isinstance(cause, SqutrError):
            raise cause from None
        raise


def config_names_of(source: str = "mini") -> list[str]:
    """The standard config names of a source; other levels (`en_snr_5`) load as well.

    >>> config_names_of("mini")[:2]
    ['en_clean', 'en_low_noise']
    """
    return config_names(dict(load_source(source).subsets), STANDARD_CONDITIONS)
