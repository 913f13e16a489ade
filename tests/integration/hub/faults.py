"""What can go wrong between a client and a Hub."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal


@dataclass
class Fault:
    """Happens to the first `times` requests whose "METHOD path" matches the pattern `on`.

    `status` is answered instead of handling the request. `drop` cuts the connection: "request" while the body is still
    coming, "response" after the request was handled, so that only the answer is lost. `before` is called first, and the
    request is then handled as usual.
    """

    on: str
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "injected"
    drop: Literal["", "request", "response"] = ""
    before: Callable[[], object] | None = None
    times: int = 1
    happened: int = 0

    def meets(self, method: str, path: str) -> bool:
        """Whether it happens now; counts."""
        if self.happened >= self.times or not re.search(self.on, f"{method} {path}"):
            return False
        self.happened += 1
        return True
