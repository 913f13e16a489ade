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

    Options: those of `recipe.open_recipe` (`noise`, `rirs`, `seed`, `level`, `limit`, `sample_rate`, `stratify`, …),
    and those of `datasets.load_dataset` (`cache_dir`, …). With a plan, the config `rirs` has the RIRs with measures.
    The configs `questions` and `questions_<part>` take `source` alone (see `questions.data.open_questions`). `audio`
    comes undecoded, as `{"bytes", "path"}`: a complete mono FLAC file.

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
