"""`python -m squtr`, the same as the command `squtr`."""

from __future__ import annotations

from .harness.cli import main

raise SystemExit(main())
