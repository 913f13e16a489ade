"""`python -m squtr.harness`, the same as the command `squtr`: what `accelerate launch -m squtr.harness` starts."""

from __future__ import annotations

from .cli import main

raise SystemExit(main())
