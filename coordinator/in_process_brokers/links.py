"""Who reaches whom: brokers among each other, and brokers and their controller."""

from __future__ import annotations

from rejoin.coordinator.core.peers import CONTROLLER

__all__ = ["CONTROLLER", "Links"]


class Links:
    """The links that are cut; all others are there."""

    def __init__(self) -> None:
        self._cut: set[frozenset[int]] = set()

    def cut(self, one: int, other: int) -> None:
        """Let nothing pass between two ends."""
        self._cut.add(frozenset((one, other)))

    def heal(self, one: int, other: int) -> None:
        """Let everything pass again."""
        self._cut.discard(frozenset((one, other)))

    def heal_all(self) -> None:
        """Let everything pass everywhere."""
        self._cut.clear()

    def are_there(self, one: int, other: int) -> bool:
        """Whether anything passes between two ends."""
        return frozenset((one, other)) not in self._cut

    def ends_cut_from(self, one: int) -> list[int]:
        """The other ends of the links of a broker that are cut."""
        return sorted(other for ends in self._cut if one in ends for other in ends if other != one)
