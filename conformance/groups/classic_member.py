"""A classic member that leads its group: joins, syncs, leaves."""

from __future__ import annotations

import base64
import struct
from typing import Any

from rejoin.conform.player.messages import Json
from rejoin.conform.player.play import Play


def subscription(*topics: str) -> str:
    """The metadata of a classic member."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return base64.b64encode(struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)).decode()


class ClassicMember:
    """A member of the script's group, which it leads."""

    def __init__(self, play: Play, instance_id: str | None = None, name: str = "m", group: str | None = None) -> None:
        self.play = play
        self.group = play.group if group is None else group
        self.name = name
        self.instance_id = instance_id
        self.topics: tuple[str, ...] = ()
        self.member_id = ""
        self.generation = -1

    async def ask(self, api: str, body: Json, version: int) -> Any:
        return await self.play.ask(self.name, api, {"groupId": self.group} | body, version)

    async def join(self) -> None:
        """Become the one member of a generation."""
        body = {
            "sessionTimeoutMs": 30_000,
            "rebalanceTimeoutMs": 30_000,
            "memberId": self.member_id,
            "groupInstanceId": self.instance_id,
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": subscription(*self.topics)}],
        }
        answer = await self.ask("JoinGroup", body, 9)
        if answer["errorCode"] == 79:
            answer = await self.ask("JoinGroup", body | {"memberId": answer["memberId"]}, 9)
        self.member_id, self.generation = answer["memberId"], answer["generationId"]

    async def sync(self) -> None:
        assignment = {"memberId": self.member_id, "assignment": ""}
        body = {
            "generationId": self.generation,
            "memberId": self.member_id,
            "groupInstanceId": self.instance_id,
            "assignments": [assignment],
        }
        await self.ask("SyncGroup", body, 4)

    async def leave(self) -> None:
        members = [{"memberId": self.member_id, "groupInstanceId": self.instance_id}]
        await self.ask("LeaveGroup", {"members": members}, 4)

    @property
    def identity(self) -> Json:
        """Fields of a transactional commit about the consumer."""
        return {
            "generationIdOrMemberEpoch": self.generation,
            "memberId": self.member_id,
            "groupInstanceId": self.instance_id,
        }
