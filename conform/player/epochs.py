"""Epochs of consumer groups where a broker begins a group with another epoch than the recorded one.

Requests name epochs, so that every further answer would be another one. Instead only the first answer of such a group
differs; from then on epochs are as far from it as they were in the recording.
"""

from __future__ import annotations

from typing import Any, Final

from rejoin.conform.player.messages import Json

OF_MEMBERS: Final = frozenset({"memberEpoch", "generationIdOrMemberEpoch", "generationId"})
"""Fields with the epoch of a member; 0 and less have a meaning of their own."""
OF_GROUPS: Final = frozenset({"groupEpoch", "assignmentEpoch"})
SHARE_HEARTBEAT: Final = "ShareGroupHeartbeat"
NEVER_REACHED: Final = 1_000_000
"""Stands for an epoch from before a group's first one, which no member has either."""
APIS: Final = frozenset(
    {"ConsumerGroupDescribe", "ConsumerGroupHeartbeat", "Heartbeat", "JoinGroup", "OffsetCommit", "OffsetFetch"}
    | {"SyncGroup", "TxnOffsetCommit"}
)


class GroupEpochs:
    """How much higher the epochs of each group are on this broker."""

    def __init__(self) -> None:
        self._higher: dict[str, int] = {}
        self._of_share_members: dict[tuple[str, str], int] = {}
        """How much higher the last epoch of each member of a share group is."""

    def to_send(self, api: str, request: Json) -> Json:
        """A request with the epochs of this broker."""
        if api == SHARE_HEARTBEAT and request["memberEpoch"] > 0:
            by = self._of_share_members.get((request["groupId"], request["memberId"]), 0)
            return {**request, "memberEpoch": _by(request["memberEpoch"], by, 1)}
        return self._moved(request, request.get("groupId"), 1) if self._is_moved(api) else request

    def as_recorded(self, api: str, request: Json, answer: Any) -> Any:
        """An answer with epochs as the recording counts them."""
        if api == "JoinGroup" and isinstance(answer, dict) and answer.get("generationId") == 1:
            self._higher[request["groupId"]] = 0  # A classic group has taken the place of an empty one.
        return self._moved(answer, request.get("groupId"), -1) if self._is_moved(api) else answer

    def learn(self, api: str, request: Json, recorded: Any, answer: Any) -> None:
        """Take in the first epoch of a group, and each one of a member of a share group."""
        if api == SHARE_HEARTBEAT:
            self._learn_share_member(request, recorded, answer)
        name = {"ConsumerGroupHeartbeat": "memberEpoch", "JoinGroup": "generationId"}.get(api)
        if name is None or request["groupId"] in self._higher:
            return
        if all(isinstance(each, dict) and not each["errorCode"] and each[name] > 0 for each in (recorded, answer)):
            self._higher[request["groupId"]] = answer[name] - recorded[name]

    def _learn_share_member(self, request: Json, recorded: Any, answer: Any) -> None:
        """A share group's epoch rises when its state is initialized, which may be before a heartbeat or after it."""
        if all(
            isinstance(each, dict) and not each["errorCode"] and each["memberEpoch"] > 0 for each in (recorded, answer)
        ):
            member = (request["groupId"], request["memberId"])
            self._of_share_members[member] = answer["memberEpoch"] - recorded["memberEpoch"]

    def _is_moved(self, api: str) -> bool:
        return api in APIS and any(self._higher.values())

    def _moved(self, value: Any, group: str | None, sign: int) -> Any:
        if isinstance(value, list):
            return [self._moved(each, group, sign) for each in value]
        if not isinstance(value, dict):
            return value
        group = None if value.get("errorCode") else value.get("groupId", group)
        by = sign * self._higher.get(group or "", 0)
        return {
            name: _by(each, by, 0 if name in OF_GROUPS else 1)
            if name in OF_MEMBERS | OF_GROUPS
            else self._moved(each, group, sign)
            for name, each in value.items()
        }


def _by(epoch: Any, by: int, lowest: int) -> Any:
    """An epoch, higher or lower by so much; ones below ``lowest`` stay."""
    if not isinstance(epoch, int) or epoch < lowest:
        return epoch
    return epoch + by if epoch + by >= lowest else NEVER_REACHED
