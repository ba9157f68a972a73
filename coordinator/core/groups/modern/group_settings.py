"""Settings that a group may have of its own, numbers within the broker's bounds. Kafka: GroupConfigManager."""

from __future__ import annotations

from collections.abc import Mapping

from rejoin.coordinator.config import Settings


class OwnSettings:
    """Effective settings of each group. A group's own take effect with the next heartbeat of each member."""

    def __init__(self, settings: Settings, configs: Mapping[str, Mapping[str, str]]) -> None:
        self._settings = settings
        self._configs = configs

    def of(self, group_id: str, name: str, otherwise: int, least: int, most: int) -> int:
        """A group's own number, brought inside the bounds, or else the broker's."""
        if not self._configs:
            return otherwise
        own = self._configs.get(group_id)
        # The bounds may have moved since the group was configured.
        return otherwise if own is None or name not in own else min(max(int(own[name]), least), most)

    def text(self, group_id: str, name: str, otherwise: str) -> str:
        """A group's own text, or else the default."""
        return self._configs.get(group_id, {}).get(name, otherwise)
