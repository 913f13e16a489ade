"""The columns of a table of records as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Columns:
    """Numbers as (n,) float64, null as NaN."""

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def floats(self, name: str) -> Floats:
        return np.asarray(self.table[name].to_numpy(), dtype=np.float64)

    def flags(self, name: str) -> NDArray[np.bool_]:
        return np.asarray(self.table[name].to_numpy(zero_copy_only=False), dtype=np.bool_)

    def texts(self, name: str) -> list[str]:
        found: list[str] = self.table[name].to_pylist()
        return found

    def lengths(self, name: str) -> NDArray[np.int64]:
        """How many elements each list of a column has."""
        return np.asarray(pc.list_value_length(self.table[name]).to_numpy(), dtype=np.int64)

    def has(self, name: str, element: str) -> NDArray[np.bool_]:
        """Whether the list of each row holds an element."""
        return np.array([element in (own or ()) for own in self.table[name].to_pylist()], dtype=bool)
