"""A small Hub on loopback, good enough for the clients of `huggingface_hub` and `datasets`.

`storage` is what a Hub knows, `app` an ASGI application over it, `faults` what can go wrong, `server` runs it.
"""

from .faults import Fault
from .server import LocalHub, serve
from .storage import Storage, User

__all__ = ["Fault", "LocalHub", "Storage", "User", "serve"]
