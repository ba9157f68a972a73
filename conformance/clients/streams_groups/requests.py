"""Heartbeats of streams groups in words: what a member changes, what it is given, status codes and errors.

Time decides how often a member beats: heartbeats that change nothing are left out, and of equal ones in a row all but
the first. Tasks are counted, since the ids that members draw decide which of them each gets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from conformance.clients.streams_groups.application import THREAD
from conformance.members.proxy import ProxiedExchange

EPOCHS: Final = {0: "joins", -1: "leaves", -2: "leaves for a while"}
BY_TIME: Final = (3, 5)
"""Codes of a member that waits for internal topics, or for its first tasks: time decides which replies have them."""
IS_LOADING: Final = (14, 15, 16)
"""Errors while a broker stops or starts. Kafka answers some, Rejoin closes connections until it serves."""
KINDS: Final = ("activeTasks", "standbyTasks", "warmupTasks")
Requests = dict[str, list[str]]
"""Heartbeats of each member in words, by its instance; one that starts again has a stroke more behind its name."""


def heartbeats_in_words(exchanges: Iterable[ProxiedExchange], group: str) -> Requests:
    """The heartbeats of a group."""
    found: Requests = {}
    names: dict[str, str] = {}
    for each in exchanges:
        if each.api != "StreamsGroupHeartbeat":
            continue
        request = json.loads(each.request.to_json(each.version))
        if request["groupId"] != group:
            continue
        answer = {} if each.response is None else json.loads(each.response.to_json(each.version))
        if request["memberId"] not in names:
            name = each.client_id.partition(THREAD)[0]
            while name in found:
                name += "'"
            names[request["memberId"]] = name
            found[name] = []
        member = found[names[request["memberId"]]]
        text = ", ".join(_words(request, answer))
        if text and member[-1:] != [text]:
            member.append(text)
    return found


def _words(request: dict[str, Any], answer: dict[str, Any]) -> Iterator[str]:
    if request["memberEpoch"] in EPOCHS:
        yield EPOCHS[request["memberEpoch"]]
    elif request["activeTasks"] is not None:
        yield f"runs {_tasks(request)}"
    if request["shutdownApplication"]:
        yield "asks for the shutdown of the application"
    if answer.get("activeTasks") is not None:
        yield f"is given {_tasks(answer)}"
    yield from (
        f"status {each['statusCode']}" for each in answer.get("status") or () if each["statusCode"] not in BY_TIME
    )
    if answer.get("errorCode") and answer["errorCode"] not in IS_LOADING:
        yield f"error {answer['errorCode']}"


def _tasks(message: dict[str, Any]) -> str:
    return "+".join(str(sum(len(each["partitions"]) for each in message[kind])) for kind in KINDS[:2])


def words_of(requests: Requests) -> set[str]:
    """The kinds of heartbeats, without numbers of tasks."""
    parts = {part for some in requests.values() for each in some for part in each.split(", ")}
    return {part.rstrip("0123456789+ ") if part.startswith(("runs", "is given")) else part for part in parts}
