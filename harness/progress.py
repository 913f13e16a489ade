"""How work tells what it is doing: bars for people, lines of JSON for machines.

Work calls a `Progress` once with 0 when a stage begins, then as items are finished. Within one call of a component,
its batches say so with `tick`, which reaches whoever called it with `within_call`.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, Self

from ..errors import StorageError, UsageError

BAR_DELAY_S = 2.0
FIRST_LINE_S = 10.0
LINE_EVERY_S = 60.0
LOG_EVERY_S = 5.0
_DRAW_EVERY_S = 1.0
_COLUMNS, _ROWS = 80, 24


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
    """What a person sees on stderr of every stage longer than some seconds: done, rate, time left, RTFx with audio.

    On a terminal a bar that is drawn once a second, from `delay_s` on, whether or not the work tells anything.
    Elsewhere a line: the first after `first_line_s`, then one in `line_every_s`, and one at the end of such a stage.
    """

    def __init__(
        self,
        *,
        delay_s: float = BAR_DELAY_S,
        first_line_s: float = FIRST_LINE_S,
        line_every_s: float = LINE_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._delay_s, self._clock = delay_s, clock
        self._first_line_s, self._line_every_s = first_line_s, line_every_s
        self._bar: Any = None
        self._stage = ""
        self._pace = Pace(0.0, 0, 0.0)
        self._lines = 0
        self._last_s = 0.0
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._drawing: threading.Thread | None = None

    def __call__(self, stage: str, done: int, total: int, *, audio_s: float = 0.0) -> None:
        with self._lock:
            if self._bar is None or stage != self._stage or done < self._pace.done:
                self._begin(stage, done, total, audio_s)
            self._pace.told(now_s=self._clock(), done=done, total=total, audio_s=audio_s)
            if self._bar.disable:
                self._write_line()
                return
            self._bar.total = total
            if done > self._pace.start_done:
                rtfx = self._pace.rtfx
                self._bar.set_postfix_str("" if rtfx is None else f"RTFx {rtfx:.3g}", refresh=False)
            self._bar.update(done - self._bar.n)

    def _begin(self, stage: str, done: int, total: int, audio_s: float) -> None:
        from tqdm import tqdm

        self._end()
        self._stage = stage
        self._pace = Pace(self._clock(), done, audio_s)
        self._pace.told(now_s=self._clock(), done=done, total=total, audio_s=audio_s)
        self._lines, self._last_s = 0, self._clock()
        self._bar = tqdm(
            total=total,
            initial=done,
            desc=stage,
            file=sys.stderr,
            disable=not sys.stderr.isatty(),
            unit="",
            delay=self._delay_s,
            miniters=0,
            **_shape(),
        )
        if done < total and not self._bar.disable:
            self._bar.set_postfix_str("loading, first batch", refresh=False)
        if self._drawing is None:
            self._closed.clear()
            self._drawing = threading.Thread(target=self._draw, name="squtr-progress", daemon=True)
            self._drawing.start()

    def _draw(self) -> None:
        """Time passes also where the work tells nothing for long."""
        while not self._closed.wait(min(_DRAW_EVERY_S, self._delay_s or _DRAW_EVERY_S, self._first_line_s)):
            with self._lock:
                if self._bar is None or self._pace.done >= self._pace.total:
                    continue
                if self._bar.disable:
                    self._write_line()
                else:
                    self._bar.update(0)

    def _write_line(self) -> None:
        now_s, pace = self._clock(), self._pace
        ended = pace.done >= pace.total
        if ended:
            due = self._lines > 0 and pace.total > 0
        else:
            due = now_s - self._last_s >= (self._line_every_s if self._lines else self._first_line_s)
        if not due:
            return
        self._lines, self._last_s = 0 if ended else self._lines + 1, now_s
        parts = [f"{self._stage}: {pace.done}/{pace.total}"]
        if pace.items_per_s is None or pace.eta_s is None:
            parts.append(f"loading, first batch, for {_clock_text(now_s - pace.start_s)}")
        else:
            parts.append(f"{pace.items_per_s:.3g}/s")
            parts.append(f"took {_clock_text(pace.elapsed_s)}" if ended else f"{_clock_text(pace.eta_s)} left")
        if pace.rtfx is not None:
            parts.append(f"RTFx {pace.rtfx:.3g}")
        print(", ".join(parts), file=sys.stderr, flush=True)  # noqa: T201

    def close(self) -> None:
        self._closed.set()
        if self._drawing is not None:
            self._drawing.join()
            self._drawing = None
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


def say_above_bars(text: str) -> None:
    """Write a line to stderr that no bar overwrites."""
    from tqdm import tqdm

    tqdm.write(text, file=sys.stderr)


def _shape() -> dict[str, Any]:
    """How tqdm learns the width. On a terminal that says it has none, as in some containers, it would show nothing."""
    try:
        known = os.get_terminal_size(sys.stderr.fileno()).columns > 0
    except (OSError, ValueError):  # no terminal, or no file
        known = True
    return {"dynamic_ncols": True} if known else {"ncols": _COLUMNS, "nrows": _ROWS}


def _clock_text(seconds: float) -> str:
    """
    >>> _clock_text(7.4), _clock_text(80), _clock_text(5000)
    ('7 s', '1 min 20 s', '1 h 23 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


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


class Counting:
    """Told how many more of `total` items are finished, which it shows."""

    def __init__(self, show: Progress, stage: str, total: int) -> None:
        self.stage = stage
        self._show, self._total, self._done = show, total, 0
        show(stage, 0, total)

    def __call__(self, n: int) -> None:
        self._done += n
        self._show(self.stage, self._done, self._total)

    def within(self, items: int, *, processes: int = 1) -> AbstractContextManager[None]:
        """Within it a component works on `items` more, and its batches show (`showing_batches`)."""
        return showing_batches(self._show, self.stage, self._done, self._total, items, processes=processes)


def counting(show: Progress, stage: str, total: int) -> Counting:
    """A function that is told how many more of `total` items are finished, and shows it."""
    return Counting(show, stage, total)


Tick = Callable[[int, int], None]
_TICK: ContextVar[Tick | None] = ContextVar("squtr_tick", default=None)


def _unheard(done: int, of: int) -> None:
    """Nobody asked."""


def is_followed() -> bool:
    """Whether somebody shows what `current_tick` is told."""
    return _TICK.get() is not None


def current_tick() -> Tick:
    """What a component tells of its batches, also from its threads: `done` more items; with `of` above 0, of so many
    that make up the whole call (pairs, batches), with 0 items of the call itself.
    """
    return _TICK.get() or _unheard


@contextmanager
def within_call(items: int, finished: Callable[[int], None]) -> Iterator[None]:
    """Within the block one component works on `items`: `finished` gets how many of them are, each time a batch is.

    >>> seen = []
    >>> with within_call(10, seen.append):
    ...     current_tick()(4, 0)
    ...     current_tick()(1, 2)
    >>> seen
    [4, 9]
    """
    lock = threading.Lock()
    reached, shown = 0.0, 0

    def tick(done: int, of: int) -> None:
        nonlocal reached, shown
        with lock:
            reached = min(float(items), reached + (done * items / of if of else done))
            # What is told is whole: a hundred thirds of a third are a hair less than their sum.
            now = int(reached + 1e-6)
            if now > shown:
                shown = now
                finished(now)

    token = _TICK.set(tick)
    try:
        yield
    finally:
        _TICK.reset(token)


@contextmanager
def showing_batches(
    show: Progress,
    stage: str,
    done: int,
    total: int,
    items: int,
    *,
    audio_s: tuple[float, float] = (0.0, 0.0),
    processes: int = 1,
) -> Iterator[None]:
    """Within the block a component works on `items` more of a stage, of which `done` are finished: its batches show.

    `audio_s` are the seconds of audio before the block, and those of its items; the other `processes` are about as far.
    The last item is left to who called: only it knows that all went well.
    """
    before_s, own_s = audio_s

    def finished(now: int) -> None:
        if done + now * processes < total:
            show(stage, done + now * processes, total, audio_s=before_s + processes * own_s * now / max(1, items))

    with within_call(items, finished):
        yield
