"""Signals that are held back until a safe point."""

from __future__ import annotations

import signal

import pytest

from planner.engines import interrupts


def test_a_signal_is_noted_until_asked() -> None:
    with interrupts.held():
        signal.raise_signal(signal.SIGINT)
        assert interrupts.asked()
        assert not interrupts.asked()


def test_the_inner_one_knows_what_the_outer_one_has_noted() -> None:
    with interrupts.held():
        signal.raise_signal(signal.SIGINT)
        with interrupts.held(), pytest.raises(KeyboardInterrupt):
            interrupts.safe_point()


def test_a_new_one_knows_nothing_of_what_was_never_asked() -> None:
    with interrupts.held():
        signal.raise_signal(signal.SIGINT)
    with interrupts.held():
        assert not interrupts.asked()


def test_a_second_signal_is_not_held_back() -> None:
    with interrupts.held():
        signal.raise_signal(signal.SIGINT)
        with interrupts.held(), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
