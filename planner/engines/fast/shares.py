"""How proof and search divide the time: each by what it has closed of the gap per second lately."""

from __future__ import annotations

from dataclasses import dataclass

LEAST = 0.25
"""Of the time, for either of them: gains come in jumps."""
MEMORY = 0.8
"""What is left of the past after each epoch of the search."""


@dataclass
class Shares:
    """Seconds spent and money gained by both, the past counting less and less."""

    proved_s: float = 0.0
    searched_s: float = 0.0
    raised: float = 0.0
    lowered: float = 0.0

    def note_proof(self, seconds: float, gain: float) -> None:
        """The bound has risen by so much."""
        self.proved_s += seconds
        self.raised += max(0.0, gain)

    def note_search(self, seconds: float, gain: float) -> None:
        """The plan has become cheaper by so much."""
        self.proved_s, self.searched_s = MEMORY * self.proved_s, MEMORY * self.searched_s + seconds
        self.raised, self.lowered = MEMORY * self.raised, MEMORY * self.lowered + max(0.0, gain)

    @property
    def of_proof(self) -> float:
        """The part of the time that the proof is worth."""
        if self.proved_s <= 0 or self.searched_s <= 0:
            return 0.5
        proof, search = self.raised / self.proved_s, self.lowered / self.searched_s
        if proof + search <= 0:
            return 0.5
        return min(1 - LEAST, max(LEAST, proof / (proof + search)))

    def is_due(self) -> bool:
        """Whether the proof has had less than its part."""
        return self.proved_s < self.of_proof * (self.proved_s + self.searched_s)
