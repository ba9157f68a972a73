"""Recorded requests of streams groups with other bytes or with fields of each other: refused ones change nothing.

``REJOIN_FUZZ_FRAMES`` says how many there are, and ``REJOIN_FUZZ_SEED`` draws others, as for the frames of other APIs.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from random import Random
from typing import Any, Final

from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup
from rejoin.journal.events.coordinator import CoreFailed
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsTopology
from rejoin.protocol.registry import DEFINED, STREAMS_GROUP_HEARTBEAT
from rejoin.protocol.wire.codec import codec_of, read_request_header
from tests.coordinator.core.groups.streams.script_player import StreamsScriptPlayer
from tests.coordinator.core.groups.streams.test_broker_scripts import scripts
from tests.coordinator.core.groups.streams.test_traps import Application

EXAMPLES: Final = int(os.environ.get("REJOIN_FUZZ_FRAMES", "1500"))
SEED: Final = int(os.environ.get("REJOIN_FUZZ_SEED", "1"))
NOT_CHANGED: Final = {"CreateTopics", "CreatePartitions", "DeleteTopics", "JoinGroup", "SyncGroup"}
"""Requests about topics, and those of the classic protocol that make a group although they are answered an error."""
NONE: Final = ErrorCode.NONE


def recorded() -> list[dict[str, Any]]:
    """Scripts without restarts, in which every step has its frame."""
    return [each for each in scripts() if all("request_hex" in step for step in each["steps"])]


def read(frame: bytes) -> tuple[Request, int] | None:
    """A request and its version, or none where the codec refuses the bytes."""
    key, version = struct.unpack_from(">hh", frame)
    codec = codec_of(key, version) if key in DEFINED else None
    if codec is None:
        return None
    try:
        return codec.read_request(frame, read_request_header(frame).body_at), version
    except ValueError:
        return None


def with_other_bytes(frame: bytes, dice: Random) -> bytes:
    """The frame with one byte changed, left out or put in behind the API and its version."""
    at, byte = dice.randrange(4, len(frame)), bytes([dice.choice((0, 1, 2, 127, 128, 255, dice.randrange(256)))])
    kind = dice.random()
    return frame[:at] + (b"" if kind > 0.9 else byte) + frame[at if kind < 0.1 else at + 1 :]


def with_other_fields(request: Request, other: Request, dice: Random) -> Request:
    """The request with some fields of another one, or of its own with the values of each other."""
    names = [*type(request).model_fields]
    update = {name: getattr(other, name) for name in dice.sample(names, 2)}
    ones = [name for name in names if isinstance(getattr(request, name), tuple)]
    if len(ones) > 1 and dice.random() < 0.3:
        one, two = dice.sample([name for name in ones if name.endswith("_tasks")] or ones * 2, 2)
        update = {one: getattr(request, two), two: getattr(request, one)}
    return request.model_copy(update=update)


class Watched:
    """A node on which a script is played, and which is asked for other things in between."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.player = StreamsScriptPlayer(script)
        self.driver = self.player.driver
        self.sent = 1_000_000
        self.seen: Counter[str] = Counter()

    def ask(self, request: Request, version: int) -> None:
        """Hand in a request, and see that a refused one has written nothing."""
        before = len(self.driver.log)
        members = self._members()
        self.sent += 1
        self.driver.receive(self.sent, request, version)
        assert not self.driver.emitted(CoreFailed), request
        reply = self.driver.replies.pop(self.sent, None)
        error = getattr(reply, "error_code", NONE)
        self.seen["accepted" if error is NONE else "refused"] += 1
        if error not in (NONE, ErrorCode.MEMBER_ID_REQUIRED):
            assert (len(self.driver.log), self._members()) == (before, members), (request, error)

    def _members(self) -> dict[str, str]:
        """Every group with its members, all of their fields."""
        return {name: f"{group.state} {group.members}" for name, group in self.groups().items()}

    def groups(self) -> dict[str, Any]:
        return dict(self.driver.shard().groups)


def test_a_changed_request_that_is_refused_changes_no_group() -> None:
    dice = Random(SEED)
    known = recorded()
    seen: Counter[str] = Counter()
    while seen.total() < EXAMPLES:
        script = dice.choice(known)
        node = Watched(script)
        earlier: list[Request] = []
        for step in script["steps"]:
            frame = bytes.fromhex(step["request_hex"])
            found = read(frame)
            for _ in range(4 if found and step["api"] not in NOT_CHANGED else 0):
                changed = read(with_other_bytes(frame, dice))
                node.seen["not read"] += changed is None
                if changed is not None:
                    node.ask(*changed)
            if found and type(found[0]) is STREAMS_GROUP_HEARTBEAT.request:
                earlier.append(found[0])
                node.ask(with_other_fields(found[0], dice.choice(earlier), dice), found[1])
            if found:
                node.ask(*found)
            node.driver.elapse(dice.choice((0, 0, 300, 5_000)))
        seen += node.seen
    assert min(seen["not read"], seen["refused"], seen["accepted"]) > EXAMPLES / 20, seen


def test_a_replacement_that_is_refused_leaves_the_member_its_place_in_the_group() -> None:
    node = Application()
    node.starts("a", instance_id="i")
    node.starts("b")
    (group,) = node.shard().groups.values()
    assert isinstance(group, StreamsGroup)
    node.heartbeat(-2, "a", instance_id="i")
    before = [(each.member_id, each.number) for each in group.members.values()], group.member_order.capacity
    other = StreamsTopology(epoch=0, subtopologies=())
    assert node.starts("c", other, instance_id="i").error_code is ErrorCode.INVALID_REQUEST
    members, capacity = [(each.member_id, each.number) for each in group.members.values()], group.member_order.capacity
    assert (sorted(members), capacity) == (sorted(before[0]), before[1])
