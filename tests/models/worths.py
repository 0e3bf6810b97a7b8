"""What completing jobs is worth by the hour, worked out by hand: slots of an hour, released at 1 h."""

from __future__ import annotations

import math
from typing import Any

from models.domain import Instance
from tests.documents import HOUR, document

Doc = dict[str, Any]

LINEAR: Doc = {"shape": "linear", "worth": 8.0, "full_until": 2 * HOUR, "zero_at": 6 * HOUR}
STEP: Doc = {"shape": "step", "worth": 8.0, "by": 3 * HOUR}
SIGMOID: Doc = {"shape": "sigmoid", "worth": 8.0, "midpoint": 4 * HOUR, "scale": HOUR / math.log(3.0)}
FAIRNESS: Doc = {"shape": "finish_time_fairness", "worth": 8.0, "fair_time": 2 * HOUR}

WORTHS: dict[str, tuple[Doc, dict[int, float]]] = {
    # A quarter of it is lost in each of the four hours from 2 h to 6 h.
    "linear": ({"utility": LINEAR}, {1: 8.0, 2: 8.0, 3: 6.0, 4: 4.0, 5: 2.0, 6: 0.0, 9: 0.0}),
    "linear, at once": ({"utility": LINEAR | {"full_until": -4 * HOUR, "zero_at": 4 * HOUR}}, {2: 2.0, 4: 0.0}),
    "step": ({"utility": STEP}, {2: 8.0, 3: 8.0, 4: 0.0}),
    # A millionth of a second before the edge is within 1e-9 slots of 3600 s, ten of them are not.
    "step, just": ({"utility": STEP | {"by": 3 * HOUR - 1e-6}}, {3: 8.0, 4: 0.0}),
    "step, not quite": ({"utility": STEP | {"by": 3 * HOUR - 1e-5}}, {2: 8.0, 3: 0.0}),
    # exp((c - midpoint) / scale) is 3 ** (hours after 4 h), from 8 / (1 + 1/9) over 8 / 2 to 8 / (1 + 9).
    "sigmoid": ({"utility": SIGMOID}, {2: 7.2, 3: 6.0, 4: 4.0, 5: 2.0, 6: 0.8}),
    "sigmoid, steep": ({"utility": SIGMOID | {"scale": 1e-9}}, {1: 8.0, 3: 8.0, 4: 4.0, 5: 0.0, 9: 0.0}),
    # Its fair share would have it complete at 3 h; 4 h after the release is twice that time, 8 h four times.
    "fairness": ({"utility": FAIRNESS}, {2: 8.0, 3: 8.0, 4: 16.0 / 3.0, 5: 4.0, 9: 2.0}),
    "steps": (
        {"value": [{"by": 2 * HOUR, "value": 8.0}, {"by": 4 * HOUR, "value": 3.0}]},
        {2: 8.0, 3: 3.0, 4: 3.0, 5: 0.0},
    ),
    "steps, just": ({"value": [{"by": 2 * HOUR - 1e-6, "value": 8.0}]}, {2: 8.0, 3: 0.0}),
    "nothing": ({}, {1: 0.0, 9: 0.0}),
}


def instance_worth(worth: Doc) -> Instance:
    """Twelve slots of an hour, and a job of an hour that is released at 1 h, with such a worth."""
    mode = {"id": "own1", "pool": "own", "gpus": 1, "duration": HOUR}
    return Instance.model_validate(document([{"release": HOUR, "modes": [mode]} | worth], horizon=12 * HOUR))
