"""How to evaluate: one set of options for every task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ...errors import UsageError
from ...loaders.partial import check_part, part_name

DEFAULT_DEPTH = 100
DEFAULT_MAX_FAILED = 0.05


@dataclass(frozen=True, slots=True)
class Options:
    """How to evaluate.

    - `metrics`: names of registered metrics; () for the benchmark's. The first is the main one.
    - `normalizer`: the text normalizer of error rates; "" for the benchmark's, or the system's own.
    - `depth`: documents retrieved per query; 0 for what the metrics need, at least 100.
    - `resamples`, `permutations`, `seed`: of the bootstrap and the permutation tests; `seed` also of what is drawn.
    - `samples`: how many items per subset keep their audio for the report's players.
    - `limit` (items per subset; 0: all) and `fraction` take a part: such runs are marked partial.
    - `dev_fraction`: the share of every subset that thresholds are fitted on (`route(confidence < auto ? …)`), and that
      no system is scored on: such runs are marked partial, too.
    - `max_failed`: a config in which a larger share of the items failed fails (0.05), and so does one whose last items
      all failed, unless it is 1. `strict`: a config in which any item failed fails.
    - `latency`: how many items of every config are timed one at a time (0: none).
    - `self_check`: whether components must show that they work before they are scored (`harness.self_check`).
    - `option_orders`: in how many orders of its options a question is asked; `baselines`: of `text-only` and
      `shuffled`, what else is asked for comparison; `spoken`: whether spoken versions of questions are asked too.

    Raises `UsageError` for values out of range.
    """

    metrics: tuple[str, ...] = ()
    normalizer: str = ""
    depth: int = 0
    resamples: int = 1000
    permutations: int = 10_000
    seed: int = 0
    samples: int = 2
    limit: int = 0
    fraction: float = 1.0
    dev_fraction: float = 0.0
    max_failed: float = DEFAULT_MAX_FAILED
    strict: bool = False
    latency: int = 0
    self_check: bool = True
    option_orders: int = 1
    baselines: tuple[str, ...] = ()
    spoken: bool = True

    def __post_init__(self) -> None:
        for name, least in (
            ("depth", 0), ("resamples", 1), ("permutations", 1), ("samples", 0), ("latency", 0), ("option_orders", 1),
        ):  # fmt: skip
            if getattr(self, name) < least:
                raise UsageError(f"{name} is {getattr(self, name)}.", hint=f"Give at least {least}.")
        check_part(self.limit, self.fraction)
        if not 0 <= self.max_failed <= 1:
            raise UsageError(f"max_failed is {self.max_failed}.", hint="Give a share of the items, from 0 to 1.")
        if not 0 <= self.dev_fraction < 1:
            raise UsageError(f"dev_fraction is {self.dev_fraction}.", hint="Give at least 0 and less than 1.")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """The options with these fields. Raises `UsageError` that lists the fields for another."""
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise UsageError(f"there is no option {name!r}.", hint=f"Known: {', '.join(known)}.")
        # From Python and JSON, lists are as good as tuples.
        chosen: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in given.items()}
        return cls(**chosen)

    def refuse(self, *names: str, where: str) -> None:
        """Raise `UsageError` if one of these options was given: it does not apply to a task."""
        for name in names:
            if getattr(self, name) != type(self).__dataclass_fields__[name].default:
                flag = f"--{name.replace('_', '-')}"
                raise UsageError(f"{flag} does not apply to {where}.", hint="Leave it out.")

    @property
    def partial(self) -> bool:
        return self.limit > 0 or self.fraction < 1 or self.dev_fraction > 0

    @property
    def part(self) -> str:
        names = ["partial", part_name(self.limit, self.fraction, self.seed)]
        if self.dev_fraction:
            names.append(f"without-dev-{self.dev_fraction!r}")
            if self.seed and not names[1]:
                names.append(f"seed-{self.seed}")
        return "-".join(filter(None, names)) if self.partial else ""
