"""Settings that a group may have of its own, numbers within the broker's bounds. Kafka: GroupConfigManager."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import ClassVar, Final, Protocol

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Millis


class GroupNumber:
    """A number of a group, such as ``share.session.timeout.ms``. Its default and bounds are settings of the broker.

    These are ``group.share.session.timeout.ms``, ``group.share.min.session.timeout.ms`` and
    ``group.share.max.session.timeout.ms``.
    """

    __slots__ = ("_default", "_least", "_most", "name", "synonym")

    def __init__(self, name: str, least: int | str | None = None, most: int | str | None = None) -> None:
        """Bounds that are not called so are given: a number, or the name of a setting of the broker."""
        kind, _, rest = name.partition(".")
        self.name: Final = name
        self.synonym: Final = f"group.{name}"
        """The broker's setting that has the default."""
        self._default: Final = _reader(self.synonym)
        self._least: Final = _bound(f"group.{kind}.min.{rest}" if least is None else least)
        self._most: Final = _bound(f"group.{kind}.max.{rest}" if most is None else most)

    def default(self, settings: Settings) -> int:
        """The number of a group that has none of its own."""
        return self._default(settings)

    def bounds(self, settings: Settings) -> tuple[int, int]:
        """The least and the most that a group may have."""
        return self._least(settings), self._most(settings)


def _reader(name: str) -> Callable[[Settings], int]:
    return attrgetter(name.replace(".", "_"))


def _bound(given: int | str) -> Callable[[Settings], int]:
    return _reader(given) if isinstance(given, str) else lambda _: given


class MemberTimings:
    """The numbers that each kind of groups has: how often members send heartbeats, and how often they are assigned."""

    __slots__ = ("assignment_interval", "heartbeat_interval", "session_timeout")

    def __init__(self, kind: str) -> None:
        self.session_timeout: Final = GroupNumber(f"{kind}.session.timeout.ms")
        self.heartbeat_interval: Final = GroupNumber(f"{kind}.heartbeat.interval.ms")
        self.assignment_interval: Final = GroupNumber(f"{kind}.assignment.interval.ms")

    @property
    def numbers(self) -> tuple[GroupNumber, ...]:
        return self.assignment_interval, self.heartbeat_interval, self.session_timeout


class HasSettings(Protocol):
    """Has the settings of the broker, which may be others later."""

    @property
    def settings(self) -> Settings: ...


class OwnSettings:
    """Effective settings of each group. A group's own take effect with the next heartbeat of each member."""

    timings: ClassVar[MemberTimings]

    def __init__(self, of: HasSettings, configs: Mapping[str, Mapping[str, str]]) -> None:
        """``of`` has the settings of the broker as they are now, ``configs`` those of groups by group id."""
        self._of = of
        self._configs = configs

    @property
    def _settings(self) -> Settings:
        return self._of.settings

    def session_timeout_ms(self, group_id: str) -> Millis:
        return self.number(group_id, self.timings.session_timeout)

    def heartbeat_interval_ms(self, group_id: str) -> Millis:
        return self.number(group_id, self.timings.heartbeat_interval)

    def assignment_interval_ms(self, group_id: str) -> Millis:
        return self.number(group_id, self.timings.assignment_interval)

    def number(self, group_id: str, number: GroupNumber) -> int:
        """A group's own number, brought inside the bounds, or else the broker's."""
        own = self._configs.get(group_id) if self._configs else None
        if own is None or number.name not in own:
            return number.default(self._of.settings)
        # The bounds may have moved since the group was configured.
        least, most = number.bounds(self._settings)
        return min(max(int(own[number.name]), least), most)

    def text(self, group_id: str, name: str, otherwise: str) -> str:
        """A group's own text, or else the default."""
        return self._configs.get(group_id, {}).get(name, otherwise)
