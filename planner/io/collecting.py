"""Python's search for cyclic garbage, put off while millions of objects are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Within, no search for cyclic garbage: documents have no cycles, and each search walks over all that is there.

    Of the time to read a large instance it takes a quarter.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
