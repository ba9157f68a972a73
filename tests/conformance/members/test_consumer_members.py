"""Lives of groups of the consumer protocol, and of groups that move there and back while their members consume.

Our client asks what Kafka's Java client asks, and lives here as there. Which partitions a member has follows the random
ids of members, so partitions are counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import chain
from typing import Any, Final

import pytest

from conformance.members.consumer_lives import CONSUMER_LIVES, DIFFERENCES
from conformance.members.lives import Life
from conformance.members.moving_lives import MOVING_LIVES
from tests.conformance.members.replayed import replayed
from tests.conformance.replaying.waits import assert_as_late
from tests.paths import GOLDEN

SILENT_ENDS: Final = {"consumer-close-without-leaving"}
"""Lives in which our member ends silently, so that its session expires where Java's member leaves."""
RESTARTS: Final = "restart"
WAITS_FOR_SEVERAL: Final = {("move-newcomers", "d")}
"""Members that get what several others give up: at once, or in parts, as time has it."""
COMPARED = (*CONSUMER_LIVES, *(life for life in MOVING_LIVES if "java" in life.clients))
EVERY_LIFE = pytest.mark.parametrize("life", COMPARED, ids=lambda life: str(life.name))


def recorded(life: Life, client: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / "members" / f"{life.name}.json").read_text())[client]
    return found


def intervals(life: Life, found: dict[str, Any]) -> dict[str, int]:
    """Requests that members repeat by a timer. While a broker is away, each try of a node asks for metadata."""
    given: dict[str, int] = found["intervals"]
    return {api: each for api, each in given.items() if api != "Metadata" or RESTARTS not in life.steps}


def counted(life: Life, found: dict[str, Any]) -> dict[str, Any]:
    """The lines of each member, each once, with topics and the number of their partitions."""
    return {
        name: {
            kind: list(dict.fromkeys(chain(*(_parts(life, line) for line in lines if not _passes(life, line)))))
            for kind, lines in kinds.items()
        }
        for name, kinds in found["members"].items()
        if (life.name, name) not in WAITS_FOR_SEVERAL
    }


def _passes(life: Life, line: str) -> bool:
    """Whether a line is there as time has it: commits follow each poll that brings records, if synchronous."""
    often = ("Metadata none", "OffsetCommit") if life.commit == "sync" else ("Metadata none",)
    return life in MOVING_LIVES and line.startswith(often)


def _parts(life: Life, line: str) -> list[str]:
    """One line, or two of it: partitions that others give up come with the answer to an acknowledgement, or later."""
    line = _counted(line)
    match = re.fullmatch(r"(Heartbeat \d+ .*owns=\d+) -> (\d+) (with \d+)", line)
    if match is None or life not in MOVING_LIVES or " 0 rebalance" in line:
        return [line]
    said, epoch, given = match.groups()
    instance = "".join(re.findall(r" instance=\w+", said))
    return [f"{said} -> {epoch}", f"Heartbeat {epoch}{instance} -> {epoch} {given}"]


def _counted(line: str) -> str:
    if line.startswith("OffsetCommit") and "more-" in line:
        # How far a member has come when it commits by its timer is a matter of time.
        line = re.sub(r"=\d+", "", line)
    head, arrow, rest = line.partition(" -> ")
    words = [re.sub(r"^(dozen|more[\w-]*)-\d+", r"\1", word) for word in head.split()]
    count = Counter(words)
    return (
        " ".join(word if count[word] == 1 else f"{count[word]}x{word}" for word in dict.fromkeys(words)) + arrow + rest
    )


@EVERY_LIFE
def test_both_clients_ask_the_same(life: Life) -> None:
    ours, java = counted(life, recorded(life, "ours")), counted(life, recorded(life, "java"))
    assert (ours == java) is (life.name not in DIFFERENCES)


@EVERY_LIFE
def test_both_groups_go_through_the_same_states(life: Life) -> None:
    """Who came and went, each epoch of the group, and each target."""
    ours, java = recorded(life, "ours")["transitions"], recorded(life, "java")["transitions"]
    assert java
    assert (ours == java) is (life.name not in SILENT_ENDS)


@EVERY_LIFE
def test_both_clients_wait_as_long(life: Life) -> None:
    ours, java = (intervals(life, recorded(life, client)) for client in ("ours", "java"))
    assert "ConsumerGroupHeartbeat" in ours
    assert_as_late(ours, java)


@EVERY_LIFE
def test_our_client_lives_as_well_on_our_coordinator(life: Life) -> None:
    replay, recording = replayed(life), recorded(life, "ours")
    found, kafka = counted(life, replay), counted(life, recording)
    if life.topics.startswith("^"):
        # Whether the topics of an expression are known to the second heartbeat or to the third is a matter of time.
        late, soon = ["Heartbeat 1 owns=0 -> 1", "Heartbeat 1 -> 2 with 12"], ["Heartbeat 1 owns=0 -> 2 with 12"]
        for kinds in (*found.values(), *kafka.values()):
            at = kinds["membership"].index(soon[0] if soon[0] in kinds["membership"] else late[0])
            kinds["membership"][at : at + 1 + (late[0] in kinds["membership"])] = soon
    assert found == kafka
    assert replay["transitions"] == recording["transitions"]
    assert_as_late(intervals(life, replay), intervals(life, recording))
