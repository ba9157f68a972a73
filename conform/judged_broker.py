"""The broker that is judged: who it is, the topics that are made on it for scripts, and their removal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from rejoin.conform.applicability import BrokerFeatures
from rejoin.conform.player.connection import Address, BrokerAccess, ClientConnections, ConnectionClosed
from rejoin.conform.player.messages import ZERO_ID, Json, NoSuchField, UnreadableResponse, api_key, newest
from rejoin.conform.player.prefix import GROUP, RunPrefix

ASK_SECONDS: Final = 10.0
LED_SECONDS: Final = 10.0
SETTLED_SECONDS: Final = 0.1
BROKER: Final = 4
SHARE: Final = 2
"""The type of a coordinator. Kafka: FindCoordinatorRequest.CoordinatorType.SHARE."""
SUMMARY: Final = "ReadShareGroupStateSummary"
DELETE: Final = 1
"""The operation that takes a setting away. Kafka: AlterConfigOp.OpType.DELETE."""
OLD_RECORDS: Final = {"retention.ms": "-1", "segment.ms": "9223372036854775807"}
"""Settings under which records of scripts stay, which are from years ago."""
WARM_UP_KEYS: Final = 60
IS_LOADING: Final = (14, 15, 16)
IS_NOT_LEADING: Final = (3, 5, 6)
OPEN_STATES: Final = ["Ongoing"]
CLUSTER: Final = "rejoin-conform"


class BrokerRefused(Exception):
    """The broker cannot be judged; the text says why, and what to do."""


class NotSpoken(Exception):
    """A request that a broker does not take in any version that is known here."""


@dataclass(frozen=True)
class JudgedBroker:
    """A broker that has answered."""

    number: int
    address: Address
    features: BrokerFeatures
    offsets_partitions: int
    access: BrokerAccess

    async def ask(self, api: str, body: Json, version: int) -> Json:
        """The answer on a connection of its own, without the names of a run."""
        access = BrokerAccess(self.access.tls, self.access.login)
        return await _ask(self.address, access, api, version, body)

    def version(self, api: str, highest: int | None = None) -> int:
        """The newest version of a request that both speak. Raises NotSpoken."""
        oldest, last = self.features.versions.get(api_key(api), (0, -1))
        found = min(last, newest(api) if highest is None else highest)
        if found < oldest:
            raise NotSpoken(api)
        return found

    async def warm_up(self, prefix: str) -> None:
        """Let the broker make its internal topics, and wait until it coordinates groups and transactions."""
        names = [f"{prefix}warm-up-{number}" for number in range(WARM_UP_KEYS)]
        for kind, api, body in (
            (0, "DescribeGroups", {"groups": names}),
            (1, "DescribeTransactions", {"transactionalIds": names}),
        ):
            if {api_key(api), api_key("FindCoordinator")} - self.features.versions.keys():
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(LED_SECONDS):
                    await self.ask("FindCoordinator", {"key": names[0], "keyType": kind}, 1)
                    while any(code in IS_LOADING for code in _codes(await self.ask(api, body, 0))):
                        await self.ask("FindCoordinator", {"key": names[0], "keyType": kind}, 1)
                        await asyncio.sleep(0.1)
        if api_key("InitProducerId") in self.features.versions:
            with suppress(TimeoutError):
                async with asyncio.timeout(LED_SECONDS):
                    producer: Json = {"transactionalId": None, "transactionTimeoutMs": 1_000}
                    while (await self.ask("InitProducerId", producer, self.version("InitProducerId", 2)))["errorCode"]:
                        await asyncio.sleep(0.1)

    async def warm_up_share_state(self, prefix: str) -> None:
        """Let the broker make the topic of the state of share-partitions; the features say where it does not."""
        if {api_key("FindCoordinator"), api_key(SUMMARY)} - self.features.versions.keys():
            return
        try:
            async with asyncio.timeout(LED_SECONDS):
                wanted = {"keyType": SHARE, "coordinatorKeys": [f"{prefix}warm-up:{ZERO_ID}:0"]}
                partition = {"partition": 0, "leaderEpoch": -1}
                state = {"groupId": f"{prefix}warm-up", "topics": [{"topicId": ZERO_ID, "partitions": [partition]}]}
                while True:
                    found = await self.ask("FindCoordinator", wanted, self.version("FindCoordinator"))
                    if not found["coordinators"][0]["errorCode"]:
                        answer = await self.ask(SUMMARY, state, self.version(SUMMARY))
                        codes = [each["errorCode"] for topic in answer["results"] for each in topic["partitions"]]
                        if not set(IS_LOADING) & set(codes):
                            return
                    await asyncio.sleep(0.1)
        except (TimeoutError, NotSpoken):
            self.features.keeps_share_state = False

    async def reset_groups(self, altered: Mapping[str, Iterable[str]]) -> None:
        """Take settings from groups, by the names of the groups."""
        resources = [
            {
                "resourceType": GROUP,
                "resourceName": group,
                "configs": [{"name": name, "configOperation": DELETE, "value": None} for name in names],
            }
            for group, names in altered.items()
        ]
        if resources:
            version = self.version("IncrementalAlterConfigs")
            await self.ask("IncrementalAlterConfigs", {"resources": resources, "validateOnly": False}, version)

    @property
    def makes_topics(self) -> bool:
        """Whether topics can be made. Otherwise the broker makes each when it is asked for it."""
        return api_key("CreateTopics") in self.features.versions

    async def make_topics(self, topics: Mapping[str, Json]) -> dict[str, str]:
        """Make topics, wait until they are led, and return their ids. Raises NotSpoken."""
        if not self.makes_topics:
            return await self._have_made(topics)
        version = self.version("CreateTopics", 7)
        wanted = [_creatable(name, about, OLD_RECORDS) for name, about in topics.items()]
        answer = await self.ask("CreateTopics", {"topics": wanted, "timeoutMs": 10_000}, version)
        refused = [one["name"] for one in answer["topics"] if one["errorCode"]]
        if refused:
            # A broker without these settings keeps its records by other rules.
            again = [_creatable(name, topics[name], {}) for name in refused]
            more = await self.ask("CreateTopics", {"topics": again, "timeoutMs": 10_000}, version)
            for one in more["topics"]:
                if one["errorCode"]:
                    raise BrokerRefused(f"topic {one['name']} was refused with error {one['errorCode']}")
            answer["topics"] += more["topics"]
        await self._until_led({name: int(about["partitions"]) for name, about in topics.items()})
        return {one["name"]: one["topicId"] for one in answer["topics"] if not one["errorCode"] and "topicId" in one}

    async def _have_made(self, topics: Mapping[str, Json]) -> dict[str, str]:
        names = [{"name": name} for name in topics]
        if not topics:
            return {}
        await self.ask("Metadata", {"topics": names}, 1)
        await asyncio.sleep(SETTLED_SECONDS)
        found = {one["name"]: one for one in (await self.ask("Metadata", {"topics": names}, 1))["topics"]}
        if any(len(found[name]["partitions"]) != about["partitions"] for name, about in topics.items()):
            raise NotSpoken("CreateTopics")
        return {}

    async def _until_led(self, topics: Mapping[str, int]) -> None:
        names = [{"name": name} for name in topics]
        with suppress(TimeoutError):
            async with asyncio.timeout(LED_SECONDS):
                while True:
                    found = (await self.ask("Metadata", {"topics": names}, 1))["topics"]
                    led = {one["name"]: sum(part["leaderId"] >= 0 for part in one["partitions"]) for one in found}
                    if all(led.get(name) == count for name, count in topics.items()) and await self._serves(topics):
                        break
                    await asyncio.sleep(0.02)
        await asyncio.sleep(SETTLED_SECONDS)

    async def _serves(self, topics: Mapping[str, int]) -> bool:
        """Whether the broker leads all partitions; metadata may say so before."""
        if api_key("ListOffsets") not in self.features.versions:
            return True
        wanted = [
            {"name": name, "partitions": [{"partitionIndex": at, "timestamp": -1} for at in range(count)]}
            for name, count in topics.items()
        ]
        body = {"replicaId": -1, "topics": wanted}
        answer = await self.ask("ListOffsets", body, max(1, self.features.versions[api_key("ListOffsets")][0]))
        codes = [one["errorCode"] for topic in answer["topics"] for one in topic["partitions"]]
        return not any(code in IS_NOT_LEADING for code in codes)

    async def remove(self, prefix: str) -> list[str]:
        """Remove everything whose name begins so; returns what is left, with the reason."""
        left: list[str] = []
        for what, remove in (
            ("transactions", self._abort_transactions),
            ("groups", self._remove_groups),
            ("topics", self._remove_topics),
        ):
            try:
                await remove(prefix)
            except NotSpoken as problem:
                left.append(f"{what}: {problem} is not spoken")
            except (OSError, LookupError, ConnectionClosed, TimeoutError, TypeError, ValueError) as problem:
                left.append(f"{what}: {type(problem).__name__} {problem}".rstrip())
        return left

    async def _abort_transactions(self, prefix: str) -> None:
        if api_key("ListTransactions") not in self.features.versions:
            return
        listed = await self.ask("ListTransactions", {"stateFilters": OPEN_STATES}, self.version("ListTransactions", 0))
        for each in listed["transactionStates"]:
            if each["transactionalId"].startswith(prefix):
                body = {"transactionalId": each["transactionalId"], "transactionTimeoutMs": 1_000}
                await self.ask("InitProducerId", body, self.version("InitProducerId", 2))

    async def _remove_groups(self, prefix: str) -> None:
        listed = await self.ask("ListGroups", {}, self.version("ListGroups"))
        ours = [one for one in listed["groups"] if one["groupId"].startswith(prefix)]
        for each in ours:
            if each.get("groupType") == "consumer":
                await self._end_consumers(each["groupId"])
            elif each.get("groupType") == "share":
                await self._end_members_of("Share", each["groupId"])
            elif each.get("groupType") == "streams":
                await self._end_members_of("Streams", each["groupId"])
            else:
                await self._end_members(each["groupId"])
        names = [one["groupId"] for one in ours]
        if names:
            await self.ask("DeleteGroups", {"groupsNames": names}, self.version("DeleteGroups", 1))

    async def _end_members(self, group: str) -> None:
        found = await self.ask("DescribeGroups", {"groups": [group]}, self.version("DescribeGroups", 4))
        for member in found["groups"][0]["members"]:
            body: Json = {"groupId": group, "memberId": member["memberId"]}
            version = self.version("LeaveGroup", 3)
            if version == 3:
                body = {"groupId": group, "members": [{"memberId": member["memberId"]}]}
            await self.ask("LeaveGroup", body, version)

    async def _end_consumers(self, group: str) -> None:
        found = await self.ask("ConsumerGroupDescribe", {"groupIds": [group]}, 0)
        for member in found["groups"][0]["members"]:
            body = {"groupId": group, "memberId": member["memberId"], "memberEpoch": -1}
            answer = await self.ask("ConsumerGroupHeartbeat", body, 0)
            if answer["errorCode"]:
                # A classic member among them.
                leave = {"groupId": group, "members": [{"memberId": member["memberId"]}]}
                await self.ask("LeaveGroup", leave, self.version("LeaveGroup", 3))

    async def _end_members_of(self, kind: str, group: str) -> None:
        """Let the members of a share group or a streams group leave."""
        describe, heartbeat = f"{kind}GroupDescribe", f"{kind}GroupHeartbeat"
        found = await self.ask(describe, {"groupIds": [group]}, self.version(describe))
        for member in found["groups"][0]["members"]:
            body = {"groupId": group, "memberId": member["memberId"], "memberEpoch": -1}
            await self.ask(heartbeat, body, self.version(heartbeat))

    async def _remove_topics(self, prefix: str) -> None:
        found = await self.ask("Metadata", {"topics": None}, 1)
        names = [one["name"] for one in found["topics"] if RunPrefix(prefix).is_of_run(one["name"])]
        if names:
            body = {"topicNames": names, "timeoutMs": 10_000}
            await self.ask("DeleteTopics", body, self.version("DeleteTopics", 5))


async def look(address: Address, access: BrokerAccess) -> JudgedBroker:
    """Ask a broker who it is. Raises BrokerRefused where there is none that could be judged."""
    where = f"{address[0]}:{address[1]}"
    try:
        versions = await _ask(address, access, "ApiVersions", 0, {})
        known = await _ask(address, access, "Metadata", 1, {"topics": None})
        spoken = {one["apiKey"]: (one["minVersion"], one["maxVersion"]) for one in versions["apiKeys"]}
        nodes = {one["nodeId"]: (one["host"], one["port"]) for one in known["brokers"]}
        internal = [one for one in known["topics"] if one["name"] == "__consumer_offsets"]
    except ConnectionClosed as problem:
        detail = f" ({problem})" if str(problem) else ""
        text = f"{where} closed the connection{detail}; expected a Kafka broker, and TLS or SASL by --command-config"
        raise BrokerRefused(text) from None
    except TimeoutError:
        raise BrokerRefused(f"{where} did not answer within {ASK_SECONDS:.0f} s; expected a Kafka broker") from None
    except (UnreadableResponse, LookupError, TypeError, ValueError) as problem:
        raise BrokerRefused(f"{where} did not answer as a Kafka broker does: {problem}") from None
    except PermissionError as problem:
        raise BrokerRefused(f"the login failed: {problem}; expected other credentials in --command-config") from None
    except OSError as problem:
        raise BrokerRefused(f"{where} cannot be reached: {problem}; name a broker by --bootstrap-server") from None
    if len(nodes) != 1:
        raise BrokerRefused(f"{where} is of a cluster of {len(nodes)} brokers; the scripts were recorded on one broker")
    ((number, listening),) = nodes.items()
    features = BrokerFeatures(spoken)
    broker = JudgedBroker(number, listening, features, len(internal[0]["partitions"]) if internal else 50, access)
    with suppress(NotSpoken, LookupError, TypeError, ValueError, OSError, ConnectionClosed, TimeoutError):
        features.levels |= await _levels(broker)
    with suppress(NotSpoken, LookupError, TypeError, ValueError, OSError, ConnectionClosed, TimeoutError):
        features.settings |= await _settings(broker)
    return broker


async def _levels(broker: JudgedBroker) -> dict[str, int]:
    body = {"clientSoftwareName": CLUSTER, "clientSoftwareVersion": "1"}
    found = await broker.ask("ApiVersions", body, broker.version("ApiVersions", 3))
    return {one["name"]: one["maxVersionLevel"] for one in found.get("finalizedFeatures", ())}


async def _settings(broker: JudgedBroker) -> dict[str, str]:
    resource = {"resourceType": BROKER, "resourceName": str(broker.number), "configurationKeys": None}
    found = await broker.ask("DescribeConfigs", {"resources": [resource]}, broker.version("DescribeConfigs"))
    return {one["name"]: one["value"] for one in found["results"][0]["configs"] or () if one["value"] is not None}


async def _ask(address: Address, access: BrokerAccess, api: str, version: int, body: Json) -> Json:
    connections = ClientConnections({0: address}, time.monotonic, access)
    try:
        async with asyncio.timeout(ASK_SECONDS):
            return await connections.ask(CLUSTER, 0, api, version, body)
    except NoSuchField as problem:
        raise NotSpoken(f"{api} v{version}: {problem}") from None
    finally:
        connections.close()


def _codes(answer: Json) -> list[int]:
    entries = answer["groups"] if "groups" in answer else answer["transactionStates"]
    return [each["errorCode"] for each in entries]


def _creatable(name: str, about: Json, usual: Mapping[str, str]) -> Json:
    configs: dict[str, Any] = {**usual, **about.get("configs", {})}
    return {
        "name": name,
        "numPartitions": about["partitions"],
        "replicationFactor": 1,
        "assignments": [],
        "configs": [{"name": key, "value": value} for key, value in configs.items()],
    }
