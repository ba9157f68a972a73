"""The states of share groups."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

SHARE: Final = "share"
"""The type of these groups, as ListGroups names it. It is the protocol type of their members as well."""


class ShareGroupState(StrEnum):
    """Where a group stands. Derived from its members; the value is the name that Kafka shows."""

    EMPTY = "Empty"
    STABLE = "Stable"


WHY: Final[dict[tuple[ShareGroupState, ShareGroupState], str]] = {
    (ShareGroupState.EMPTY, ShareGroupState.STABLE): "a member joins",
    (ShareGroupState.STABLE, ShareGroupState.EMPTY): "the last member leaves or expires",
}
"""Every transition, and what causes it. The state follows from the members, so the table describes the code."""
