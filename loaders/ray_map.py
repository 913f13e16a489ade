"""Mapping items in order by the actors of a Ray cluster, through Ray Data (extra `squtr[ray]`).

Actors, not tasks: what a worker opened or loaded, it keeps. Errors of squtr travel as data: Ray would wrap them so that
neither their class nor their words come back.
"""

from __future__ import annotations

import logging
import math
import pickle
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from ..errors import SqutrError, UsageError, missing_extra

Worker = Callable[[Any], Any]
_CONNECT_S = 10.0


class RayMap:
    """Actors on the cluster that `ray.init` finds (`address` as there; None: the running one, or a local one).

    `actors` is the largest number of them, 0 for as many as the cluster has room for; each takes a CPU and
    `gpus_per_actor` GPUs (a share as 0.5 lets two sit on one). `num_cpus` limits a cluster that is started here. Raises
    `MissingExtraError` without ray, `UsageError` for numbers below 0.
    """

    def __init__(
        self, address: str | None = None, *, num_cpus: int | None = None, actors: int = 0, gpus_per_actor: float = 0.0
    ) -> None:
        try:
            import ray
        except ImportError as error:
            raise missing_extra("ray", "ray") from error
        if actors < 0 or not (math.isfinite(gpus_per_actor) and gpus_per_actor >= 0):
            raise UsageError(f"{actors} actors with {gpus_per_actor:g} GPUs each.", hint="Give 0 or more.")
        if gpus_per_actor > 1 and gpus_per_actor != int(gpus_per_actor):
            raise UsageError(
                f"an actor cannot have {gpus_per_actor:g} GPUs.", hint="Give a whole number, or a share below 1."
            )
        self._ray: Any = ray
        self._address, self._num_cpus = address, num_cpus
        self._actors, self._gpus = actors, gpus_per_actor

    def __call__(self, make: Callable[..., Worker], arguments: Sequence[Any], items: Sequence[Any]) -> Iterator[Any]:
        """`worker(item)` for every item, in order; each actor makes its `worker = make(*arguments)` once (all pickled).

        Raises the `SqutrError` that a worker raised, `UsageError` if no cluster answers or it has no GPU for an actor.
        """
        import ray.data

        self._connect()
        size = self._pool_size()
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        rows = ray.data.from_items([{"item": pickle.dumps(item)} for item in items], override_num_blocks=len(items))
        mapped = rows.map_batches(
            _Actor,
            batch_size=1,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=min(size, len(items))),
            num_cpus=1,
            num_gpus=self._gpus or None,
            fn_constructor_args=(make, tuple(arguments)),
        )
        with _quiet("ray.data"):
            for row in mapped.iter_rows():
                if row["error"]:
                    raise pickle.loads(row["error"])  # noqa: S301 - made by our own worker
                yield pickle.loads(row["made"])  # noqa: S301 - made by our own worker

    def _connect(self) -> None:
        if self._ray.is_initialized():
            return
        if self._address:
            _check_answers(self._address)
        try:
            self._ray.init(
                address=self._address,
                num_cpus=self._num_cpus,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except (ConnectionError, ValueError) as error:
            message = str(error).rstrip(".").splitlines()[0]
            raise UsageError(
                f"Ray does not start at {self._address!r}: {message}.", hint="See `ray status`."
            ) from error

    def _pool_size(self) -> int:
        has = self._ray.cluster_resources()
        room = int(has.get("CPU", 0.0))
        if self._gpus:
            if has.get("GPU", 0.0) < self._gpus:
                raise UsageError(
                    f"the Ray cluster has {has.get('GPU', 0.0):g} GPUs, an actor asks for {self._gpus:g}.",
                    hint="Start Ray on a machine with GPUs, or ask for none.",
                )
            room = min(room, int(has["GPU"] / self._gpus + 1e-9))
        return self._actors or max(1, room)


def _check_answers(address: str) -> None:
    """Refuse an address of the form host:port where nothing listens: Ray itself tries for minutes and then exits."""
    host, separator, port = address.rpartition(":")
    if not separator or "/" in address or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"no Ray cluster answers at {address!r}: {error}.", hint="Start one with `ray start --head`."
        ) from error


@contextmanager
def _quiet(logger: str) -> Iterator[None]:
    """Keep what this logger says below warnings off the terminal for a while: there is a progress bar of our own."""
    target = logging.getLogger(logger)
    before = target.level
    target.setLevel(logging.WARNING)
    try:
        yield
    finally:
        target.setLevel(before)


class _Actor:
    """Holds the worker, which is made at the first item, so that an error in making it comes back like any other."""

    def __init__(self, make: Callable[..., Worker], arguments: tuple[Any, ...]) -> None:
        self._make, self._arguments = make, arguments
        self._worker: Worker | None = None

    def __call__(self, batch: pa.Table) -> pa.Table:
        made: list[bytes] = []
        errors: list[bytes] = []
        for item in batch["item"].to_pylist():
            try:
                if self._worker is None:
                    self._worker = self._make(*self._arguments)
                result, error = pickle.dumps(self._worker(pickle.loads(item))), b""  # noqa: S301 - our own
            except SqutrError as raised:
                result, error = b"", pickle.dumps(raised)
            made.append(result)
            errors.append(error)
        binary = pa.large_binary()
        return pa.table({"made": pa.array(made, binary), "error": pa.array(errors, binary)})
