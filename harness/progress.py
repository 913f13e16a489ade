"""How work tells what it is doing: bars for people, lines of JSON for machines.

Work calls a `Progress` once with 0 when a stage begins, then as items are finished.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, Self

from ..errors import StorageError, UsageError

BAR_DELAY_S = 2.0
LOG_EVERY_S = 5.0


class Progress(Protocol):
    """Told what the work is doing."""

    def __call__(self, stage: str, done: int, total: int, *, audio_s: float = 0.0) -> None:
        """`done` of `total` items of this stage are finished, with `audio_s` seconds of audio so far in this stage."""
        ...


@dataclass(slots=True)
class Pace:
    """How fast a stage goes, from where and when it was first reported.

    >>> pace = Pace(start_s=10.0, start_done=0, start_audio_s=0.0)
    >>> pace.told(now_s=12.0, done=4, total=10, audio_s=30.0)
    >>> pace.items_per_s, pace.rtfx, pace.eta_s
    (2.0, 15.0, 3.0)
    """

    start_s: float
    start_done: int
    start_audio_s: float
    now_s: float = 0.0
    done: int = 0
    total: int = 0
    audio_s: float = 0.0

    def told(self, *, now_s: float, done: int, total: int, audio_s: float) -> None:
        self.now_s, self.done, self.total, self.audio_s = now_s, done, total, audio_s

    @property
    def elapsed_s(self) -> float:
        return max(0.0, self.now_s - self.start_s)

    @property
    def items_per_s(self) -> float | None:
        return self._rate(self.done - self.start_done)

    @property
    def rtfx(self) -> float | None:
        return self._rate(self.audio_s - self.start_audio_s)

    @property
    def eta_s(self) -> float | None:
        """Seconds that are left at this rate; None if that is not known."""
        rate = self.items_per_s
        return None if rate is None else max(0, self.total - self.done) / rate

    def _rate(self, amount: float) -> float | None:
        return amount / self.elapsed_s if amount > 0 and self.elapsed_s > 0 else None


class Bars:
    """Bars on a terminal's stderr, one per stage longer than `delay_s`: items/s, time left, RTFx with audio."""

    def __init__(self, *, delay_s: float = BAR_DELAY_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._delay_s, self._clock = delay_s, clock
        self._bar: Any = None
        self._stage = ""
        self._pace = Pace(0.0, 0, 0.0)
        self._lock = threading.Lock()

    def __call__(self, stage: str, done: int, total: int, *, audio_s: float = 0.0) -> None:
        with self._lock:
            if self._bar is None or stage != self._stage or done < self._bar.n:
                self._begin(stage, done, total, audio_s)
            if self._bar.disable:
                return
            self._pace.told(now_s=self._clock(), done=done, total=total, audio_s=audio_s)
            self._bar.total = total
            if self._pace.rtfx is not None:
                self._bar.set_postfix_str(f"RTFx {self._pace.rtfx:.3g}", refresh=False)
            self._bar.update(done - self._bar.n)

    def _begin(self, stage: str, done: int, total: int, audio_s: float) -> None:
        from tqdm import tqdm

        self._end()
        self._stage = stage
        self._pace = Pace(self._clock(), done, audio_s)
        self._bar = tqdm(
            total=total,
            initial=done,
            desc=stage,
            file=sys.stderr,
            disable=not sys.stderr.isatty(),
            unit="",
            delay=self._delay_s,
            dynamic_ncols=True,
        )

    def close(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class JsonLog:
    """A file with one JSON object per line, for machines that watch the work; several programs may append to it.

    Every line has `time` (UTC, ISO 8601) and `event`: `stage_start`, `progress` (at most one per stage in `every_s`),
    `stage_end`, or `note`. All but a note have `stage`, `done`, `total`, `items_per_s`, `rtfx` and `eta_s` (null where
    not known), `stage_end` also `seconds`. Raises `StorageError` if the file cannot be opened or written.
    """

    def __init__(
        self,
        path: Path,
        *,
        every_s: float = LOG_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._path, self._every_s, self._clock, self._now = path, every_s, clock, now
        self._stages: dict[str, Pace] = {}
        self._written_s: dict[str, float] = {}
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise self._refused(error) from error
        self._open = True
        try:
            self._finish_torn_line()
        except BaseException:
            self._release()
            raise

    def __call__(self, stage: str, done: int, total: int, *, audio_s: float = 0.0) -> None:
        """Write what has become of a stage, if it is time to."""
        with self._lock:
            now_s = self._clock()
            pace = self._stages.get(stage)
            if pace is not None and done < pace.done:
                # The same work on other data, which did not finish the first.
                self._finish(stage, pace)
                pace = None
            if pace is None:
                pace = self._stages[stage] = Pace(now_s, done, audio_s)
                pace.told(now_s=now_s, done=done, total=total, audio_s=audio_s)
                self._written_s[stage] = now_s
                self._write({"event": "stage_start", **_numbers(stage, pace)})
            pace.told(now_s=now_s, done=done, total=total, audio_s=audio_s)
            if done >= total > 0:
                self._finish(stage, pace)
            elif now_s - self._written_s[stage] >= self._every_s:
                self._written_s[stage] = now_s
                self._write({"event": "progress", **_numbers(stage, pace)})

    def note(self, text: str, **values: str | float | bool | None) -> None:
        taken = {"time", "event", "text"} & set(values)
        if taken:
            raise UsageError(f"a note cannot have a field {sorted(taken)[0]!r}.", hint="Choose another name.")
        with self._lock:
            self._write({"event": "note", "text": text, **values})

    def close(self) -> None:
        """End the stages that are not finished, and close the file. Closing twice does nothing."""
        with self._lock:
            if not self._open:
                return
            try:
                for stage, pace in list(self._stages.items()):
                    self._finish(stage, pace)
            finally:
                self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _finish(self, stage: str, pace: Pace) -> None:
        del self._stages[stage], self._written_s[stage]
        self._write({"event": "stage_end", **_numbers(stage, pace), "seconds": round(pace.elapsed_s, 3)})

    def _write(self, content: dict[str, Any]) -> None:
        time_text = self._now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        finite = {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in content.items()}
        line = json.dumps({"time": time_text, **finite}, ensure_ascii=False, allow_nan=False) + "\n"
        self._append(line.encode("utf-8"))

    def _append(self, content: bytes) -> None:
        if not self._open:
            raise UsageError(f"the log {self._path} is closed.", hint="Open a new one.")
        try:
            while content:
                content = content[os.write(self._descriptor, content) :]
        except OSError as error:
            raise self._refused(error) from error

    def _finish_torn_line(self) -> None:
        """A run that was killed while it wrote leaves half a line, to which nothing may be joined."""
        try:
            size = os.lseek(self._descriptor, 0, os.SEEK_END)
            torn = size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"
        except OSError:
            # A pipe or a terminal has no lines of before.
            return
        if torn:
            self._append(b"\n")

    def _release(self) -> None:
        self._open = False
        os.close(self._descriptor)

    def _refused(self, error: OSError) -> StorageError:
        return StorageError(
            f"the log {self._path} cannot be written: {error.strerror or error}.",
            hint="Make room, or give another file.",
        )


def _numbers(stage: str, pace: Pace) -> dict[str, Any]:
    def short(value: float | None) -> float | None:
        return None if value is None else float(f"{value:.4g}")

    return {
        "stage": stage,
        "done": pace.done,
        "total": pace.total,
        "items_per_s": short(pace.items_per_s),
        "rtfx": short(pace.rtfx),
        "eta_s": short(pace.eta_s),
    }


def tee(*receivers: Progress) -> Progress:
    """One `Progress` that tells all of these, in order. None of them is closed by it.

    >>> seen = []
    >>> both = tee(lambda *told, audio_s=0.0: seen.append(told), lambda *told, audio_s=0.0: seen.append(audio_s))
    >>> both("transcribing", 1, 2, audio_s=3.5)
    >>> seen
    [('transcribing', 1, 2), 3.5]
    """

    def tell(stage: str, done: int, total: int, *, audio_s: float = 0.0) -> None:
        for each in receivers:
            each(stage, done, total, audio_s=audio_s)

    return tell


def counting(show: Progress, stage: str, total: int) -> Callable[[int], None]:
    """A function that is told how many more of `total` items are finished, and shows it."""
    done = 0
    show(stage, 0, total)

    def advance(n: int) -> None:
        nonlocal done
        done += n
        show(stage, done, total)

    return advance
