"""What a result of this task holds beside scores, groups and losses."""

from __future__ import annotations

from pydantic import Field

from ...results.envelope import Loss, Score
from ...results.files import FileModel


class KindRate(FileModel):
    """One kind of error per reference token, and the change against `clean` (null for clean itself)."""

    rate: Score
    change: Score | None = None


class OtherRate(FileModel):
    """A rate under another text normalizer, and its loss against `clean`."""

    rate: Score
    loss: Loss | None = None


class Spread(FileModel):
    """How much the loss against `clean` differs from RIR to RIR: standard deviations (see `paired_conditions`)."""

    within_utterances: Score
    between_rirs: Score
    rir_component: Score


class ChangePoint(FileModel):
    """From which RT60 on the main metric is lost against `clean`.

    `threshold_s` with its interval and `slope_per_s` are the change point's (see `metrics.change_point`); null where no
    growing loss was found, `high_s` also where some resamples have none. `significant_from_s` is the lower edge of the
    first bin from which on all bins lose significantly, tested from the most reverberant down; 0 if all do, null if
    none does.
    """

    method: str
    threshold_s: float | None
    low_s: float | None
    high_s: float | None
    slope_per_s: float | None
    p_value: float | None
    n: int
    significant_from_s: float | None


class RecognitionDetails(FileModel):
    """The details of a result.

    - `kinds`: unit (`word`, `char`) to kind (`substitutions`, `deletions`, `insertions`) to its rate;
    - `other_normalizers`: name of the normalizer to corpus rates by metric;
    - `spread`, `change_point`: where the condition has RIRs and `clean` was evaluated too;
    - `front_end_cost`: seconds that the front end takes per second of audio;
    - `loss_change`: by how much the front end changes the loss against `clean` by metric (positive: it loses more).
    """

    kinds: dict[str, dict[str, KindRate]]
    other_normalizers: dict[str, dict[str, OtherRate]]
    spread: Spread | None = None
    change_point: ChangePoint | None = None
    front_end_cost: float | None = None
    loss_change: dict[str, Loss] = Field(default_factory=dict)
