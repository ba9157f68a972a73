"""Plays scripts of streams groups that were recorded on a real broker on one node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.core.node import Node
from rejoin.protocol.registry import DEFINED, Api
from tests.coordinator.core.driver import PARTITION, Driver, uuid_in
from tests.coordinator.core.groups.test_consumer_traces import normal

_APIS: Final[dict[str, Api]] = {api.name: api for api in DEFINED.values()}
_SETTINGS: Final = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}


class StreamsScriptPlayer:
    """One node, to which the steps of a script happen."""

    def __init__(self, script: Mapping[str, Any]) -> None:
        self.ids = 0
        self.settings = Settings.model_validate(_SETTINGS | script["settings"])
        self.driver = self.new_driver()
        self.driver.see_cluster()
        self.driver.elect(PARTITION)
        self.sent = 0
        self.member_ids: dict[str, str] = {}
        """Ids of this node by ids of the recorded broker."""

    def new_driver(self) -> Driver:
        return Driver(Node(self.settings, self._new_id))

    def _new_id(self) -> str:
        self.ids += 1
        return uuid_in(f"{self.ids:032x}")

    def play(self, step: Mapping[str, Any]) -> Any:
        """Carry out a step; returns the reply, or none for a step without one."""
        self.driver.elapse(step["after"])
        if step.get("op") == "restart":
            self.driver.resign(PARTITION)
            self.driver.elect(PARTITION)
            return None
        reply = self.ask(step["api"], step["version"], self.translated(step["body"]), step.get("client", "client"))
        if step["api"] == "JoinGroup" and step["reply"]["memberId"]:
            self.member_ids[step["reply"]["memberId"]] = reply["memberId"]
        if step["api"] == "CreateTopics":
            return None
        return reply

    def ask(self, name: str, version: int, body: Any, client: str = "client") -> Any:
        self.send(name, version, body, client)
        if self.sent not in self.driver.replies:
            # A JoinGroup waits for others.
            self.driver.elapse(self.settings.group_initial_rebalance_delay_ms)
        return json.loads(self.driver.replies.pop(self.sent).to_json(version))

    def send(self, name: str, version: int, body: Any, client: str) -> None:
        self.sent += 1
        request = _APIS[name].request.from_json(json.dumps(body))
        self.driver.request(self.sent, request, Context(version, client, "/127.0.0.1", "User:ANONYMOUS"))

    def translated(self, value: Any) -> Any:
        """A value of the script with the ids of this node."""
        text = json.dumps(value)
        for recorded, ours in self.member_ids.items():
            text = text.replace(recorded, ours)
        return json.loads(text)


def comparable(api: str, reply: Any) -> Any:
    """A reply without details in words, and with lists that have no order sorted."""
    shown = dict(reply)
    if shown.get("status"):
        shown["status"] = [each["statusCode"] for each in shown["status"]]
    if "protocolName" in shown:
        shown["protocolName"] = shown["protocolName"] or None
    if api == "IncrementalAlterConfigs":
        shown["responses"] = [{**each, "errorMessage": None} for each in shown["responses"]]
    return normal(shown)
