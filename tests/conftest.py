"""Settings for all tests."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# A shell that starts the tests in the background has them ignore Ctrl-C, which every program that they start inherits.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Generated examples are the same in every run, so that a change is judged by what it does and not by luck; a wider
# search is asked for by name: HYPOTHESIS_PROFILE=search scripts/test tests/io
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", derandomize=False, deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
