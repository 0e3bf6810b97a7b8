"""A simulated schedule replayed against its instance: what it did, and what that cost, judged anew."""

from models.check.replay.rules import replay

__all__ = ["replay"]
