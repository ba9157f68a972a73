"""Several nodes on one PostgreSQL: who leads what, where requests go, what all nodes know, and what is handed over."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from rejoin.coordinator.leadership.lease_driver import LeaseDriver
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import ControlOptions, InitialTopic, Options, StartFailed
from rejoin.coordinator.storage.base import StoreProblem
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, offsets_partition
from rejoin.protocol.registry import BY_NAME
from tests.coordinator.leadership.nodes import LEASE_MS, PARTITIONS, Nodes, cluster, partition_of, settings, until
from tests.coordinator.leadership.processes import Cluster, NodeProcess
from tests.coordinator.service.helpers import join, sync
from tests.coordinator.storage.proxy import Wire
from tests.postgres import PostgresServer

GROUP = "orders-app"


@pytest.fixture
async def three(postgres: str) -> AsyncIterator[Nodes]:
    async with cluster(postgres, 1, 2, 3) as nodes:
        yield nodes


async def create(nodes: Nodes, app: App, name: str, partitions: int = 3) -> ErrorCode:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1, assignments=(), configs=())
    answer = await nodes.ask(app, CreateTopicsRequest(topics=(topic,)), 7)
    error: ErrorCode = answer.topics[0].error_code
    return error


def topics(app: App) -> dict[str, str]:
    return {view.topic: view.topic_id for view in app.runtime.node.describe_topics(0)}


async def stable(nodes: Nodes, app: App, group: str, instance: str | None = None) -> tuple[str, int]:
    """A group of one member, Stable; its member id and generation."""
    more: dict[str, Any] = {} if instance is None else {"groupInstanceId": instance}
    member_id = ""
    if instance is None:
        member_id = (await nodes.call(app, "JoinGroup", join(group), 9))["memberId"]
    joined = await nodes.call(app, "JoinGroup", {**join(group, member_id), **more}, 9)
    assert joined["errorCode"] == 0, joined
    synced = {**sync(group, joined["memberId"], joined["generationId"], {joined["memberId"]: {"orders": [0]}}), **more}
    assert (await nodes.call(app, "SyncGroup", synced, 5))["errorCode"] == 0
    return joined["memberId"], joined["generationId"]


def beat(group: str, member_id: str, generation: int, **more: Any) -> dict[str, Any]:
    return {"groupId": group, "generationId": generation, "memberId": member_id, **more}


def commit(group: str, member_id: str, generation: int, offset: int, **more: Any) -> dict[str, Any]:
    partition = {"partitionIndex": 0, "committedOffset": offset, "committedMetadata": ""}
    return {
        "groupId": group,
        "generationIdOrMemberEpoch": generation,
        "memberId": member_id,
        "topics": [{"name": "orders", "partitions": [partition]}],
        **more,
    }


async def committed(nodes: Nodes, app: App, group: str) -> int:
    wanted = [{"name": "orders", "partitionIndexes": [0]}]
    answer = await nodes.call(app, "OffsetFetch", {"groupId": group, "topics": wanted, "requireStable": True}, 7)
    assert answer["errorCode"] == 0, answer
    offset: int = answer["topics"][0]["partitions"][0]["committedOffset"]
    return offset


async def coordinator_of(nodes: Nodes, app: App, key: str, key_type: int = 0) -> dict[str, Any]:
    found = await nodes.call(app, "FindCoordinator", {"keyType": key_type, "coordinatorKeys": [key]}, 4)
    coordinator: dict[str, Any] = found["coordinators"][0]
    return coordinator


async def test_partitions_are_spread_evenly_and_all_nodes_agree_on_them(three: Nodes) -> None:
    assert three.counts() == [2, 2, 2]
    for app in three.apps.values():
        assert (await coordinator_of(three, app, GROUP))["port"] == three.leader(GROUP).port
    await coordinator_of(three, three.apps[1], "t", key_type=1)  # the first question makes the topic
    nodes = [app.runtime.node for app in three.apps.values()]
    await until(lambda: all(node.topic_ids() for node in nodes), "the topic did not reach every node")
    ports = {(await coordinator_of(three, app, "t", key_type=1))["port"] for app in three.apps.values()}
    assert len(ports) == 1
    assert ports <= {app.port for app in three.apps.values()}
    other = next(app for app in three.apps.values() if app is not three.leader(GROUP))
    refused = await three.call(other, "Heartbeat", beat(GROUP, "unknown", 1), 4)
    assert refused["errorCode"] == ErrorCode.NOT_COORDINATOR


async def test_nodes_that_come_and_go_change_who_leads_but_never_what_is_in_a_group(three: Nodes) -> None:
    assert await create(three, three.apps[1], "orders") is ErrorCode.NONE
    member_id, generation = await stable(three, three.leader(GROUP), GROUP)
    for change in (three.stop(1), three.start(4), three.stop(2), three.stop(3), three.start(5)):
        await change
        await three.until_balanced()
        answer = await three.call(three.leader(GROUP), "Heartbeat", beat(GROUP, member_id, generation), 4)
        assert answer["errorCode"] == 0
    epochs = [partition["epoch"] for partition in (await three.look(three.apps[4], "/cluster"))[1]["partitions"]]
    assert min(epochs) > 0


async def test_a_node_that_stops_sends_its_clients_elsewhere_and_not_into_a_timeout(three: Nodes) -> None:
    app = three.leader(GROUP)
    node_id = app.runtime.broker.node_id
    await stable(three, app, GROUP)
    second = (await three.call(app, "JoinGroup", join(GROUP), 9))["memberId"]
    parked = asyncio.ensure_future(three.call(app, "JoinGroup", join(GROUP, second), 9))
    await until(lambda: app.runtime.node.describe().parked_joins == 1, "the join does not wait")
    others = [other for other in three.apps.values() if other is not app]
    await three.stop(node_id)
    assert (await parked)["errorCode"] == ErrorCode.NOT_COORDINATOR
    # On a busy machine the other node takes the last one only now.
    await until(
        lambda: sum(len(other.runtime.leading) for other in others) == PARTITIONS, "a partition was not handed over"
    )
    assert (await coordinator_of(three, others[0], GROUP))["errorCode"] == 0


async def test_a_partition_that_is_resigned_is_led_by_another_node(three: Nodes) -> None:
    app = three.leader(GROUP)
    partition = partition_of(GROUP)
    status, answer = await three.look(app, f"/cluster/partitions/{partition.partition}/resign", "POST")
    assert (status, answer) == (200, {"topic": OFFSETS_TOPIC, "partition": partition.partition, "leading": False})
    await until(lambda: three.leading().get(partition) not in (None, app.runtime.broker.node_id), "no node takes it")
    status, answer = await three.look(app, f"/cluster/partitions/{partition.partition}/resign", "POST")
    assert status == 409
    assert "ask that node" in answer["detail"] or "no leader" in answer["detail"]
    assert (await three.look(app, f"/cluster/partitions/{PARTITIONS}/resign", "POST"))[0] == 404
    assert (await three.look(app, "/cluster/partitions/0/resign"))[0] == 405
    await three.until_balanced()


async def test_the_cluster_shows_nodes_leases_epochs_and_load_times(three: Nodes) -> None:
    def everything_reported(shown: dict[str, Any]) -> bool:
        return all(partition["loadMs"] is not None for partition in shown["partitions"])

    shown: dict[str, Any] = {"partitions": [{"loadMs": None}]}
    async with asyncio.timeout(30):
        while not everything_reported(shown):  # load times of others come with their next renewal
            _, shown = await three.look(three.apps[2], "/cluster")
            await asyncio.sleep(0.05)
    assert [(node["nodeId"], node["alive"], node["leads"]) for node in shown["nodes"]] == [
        (1, True, 2),
        (2, True, 2),
        (3, True, 2),
    ]
    assert (shown["nodeId"], shown["leaseMs"]) == (2, LEASE_MS)
    assert sorted({partition["state"] for partition in shown["partitions"]}) == ["active", "elsewhere"]
    assert all(0 < partition["leaseMsLeft"] <= LEASE_MS for partition in shown["partitions"])
    assert (await three.look(three.apps[2], "/readyz"))[0] == 200
    assert (await three.look(three.apps[2], "/healthz"))[0] == 200
    async with three.session.get(three.apps[2].url + "/metrics") as answer:
        lines = (await answer.text()).splitlines()
    assert 'rejoin_partitions_led{topic="__consumer_offsets"} 2.0' in lines
    assert any(line.startswith('rejoin_leases_total{what="acquired"} ') for line in lines)
    assert 'rejoin_leases_total{what="expired"} 0.0' in lines


async def test_a_group_that_is_too_large_for_its_new_coordinator_rebalances_on_load(postgres: str) -> None:
    async with cluster(postgres, 1) as nodes:
        app = nodes.apps[1]
        await stable(nodes, app, GROUP, instance="one")
        second = asyncio.ensure_future(nodes.call(app, "JoinGroup", {**join(GROUP), "groupInstanceId": "two"}, 9))
        await until(lambda: app.runtime.node.describe().parked_joins == 1, "the second one does not wait")
        view = app.runtime.node.describe_group(GROUP)
        assert view is not None
        rejoined = await nodes.call(
            app, "JoinGroup", {**join(GROUP, view.members[0].member_id), "groupInstanceId": "one"}, 9
        )
        joined = await second
        owned = {rejoined["memberId"]: {"orders": [0]}, joined["memberId"]: {"orders": [1]}}
        leader, follower = (rejoined, joined) if rejoined["leader"] == rejoined["memberId"] else (joined, rejoined)
        waits = asyncio.ensure_future(
            nodes.call(app, "SyncGroup", sync(GROUP, follower["memberId"], 2, {}, **_instance(follower, joined)), 5)
        )
        answer = await nodes.call(
            app, "SyncGroup", sync(GROUP, leader["memberId"], 2, owned, **_instance(leader, joined)), 5
        )
        assert (answer["errorCode"], (await waits)["errorCode"]) == (0, 0)
        heir = await nodes.start(2, group_max_size=1)
        await nodes.stop(1)
        await nodes.until_balanced()
        loaded = heir.runtime.node.describe_group(GROUP)
        assert loaded is not None
        assert (loaded.state, loaded.generation, len(loaded.members)) == ("PreparingRebalance", 2, 2)


def _instance(answer: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {"groupInstanceId": "two" if answer is second else "one"}


async def test_topics_belong_to_all_nodes_and_outlive_them(three: Nodes, postgres: str) -> None:
    first, second = await asyncio.gather(create(three, three.apps[1], "orders"), create(three, three.apps[2], "orders"))
    assert sorted((first, second)) == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]
    await create(three, three.apps[3], "payments")
    await until(lambda: all(len(topics(app)) == 2 for app in three.apps.values()), "a node does not learn of a topic")
    known = topics(three.apps[1])
    assert all(topics(app) == known for app in three.apps.values())
    for node_id in (1, 2, 3):
        await three.stop(node_id)
    again = await three.start(4, topics=(InitialTopic("orders", 3), InitialTopic("refunds", 1)))
    assert {name: topics(again)[name] for name in known} == known
    assert sorted(topics(again)) == ["orders", "payments", "refunds"]


async def test_offsets_of_a_topic_go_when_another_node_deletes_it(three: Nodes) -> None:
    await create(three, three.apps[1], "orders")
    app = three.leader(GROUP)
    await until(lambda: "orders" in topics(app), "the topic is not known")
    answer = await three.call(app, "OffsetCommit", commit(GROUP, "", -1, 7), 8)
    assert answer["topics"][0]["partitions"][0]["errorCode"] == 0
    other = next(each for each in three.apps.values() if each is not app)
    await until(lambda: "orders" in topics(other), "the topic is not known")
    gone = DeleteTopicState(name="orders", topic_id=ZERO)
    deleted = await three.ask(other, DeleteTopicsRequest(topics=(gone,), timeout_ms=1_000), 6)
    assert deleted.responses[0].error_code is ErrorCode.NONE
    await until(lambda: not app.runtime.node.describe_offsets(GROUP, 0), "the offset stays")


ZERO = "AAAAAAAAAAAAAAAAAAAAAA"


async def test_a_static_member_and_a_commit_without_an_answer_survive_a_failover(three: Nodes) -> None:
    await create(three, three.apps[1], "orders")
    app = three.leader(GROUP)
    member_id, generation = await stable(three, app, GROUP, instance="one")
    await until(lambda: "orders" in topics(app), "the topic is not known")
    who = {"groupInstanceId": "one"}
    # It is committed, but the client gets no answer.
    asked = asyncio.ensure_future(three.call(app, "OffsetCommit", commit(GROUP, member_id, generation, 5, **who), 8))
    await until(lambda: bool(app.runtime.node.describe_offsets(GROUP, 0)), "the commit is not stored")
    asked.cancel()
    app.runtime.resign(partition_of(GROUP))
    await until(lambda: three.leading().get(partition_of(GROUP)) is not None, "no node takes over")
    await three.until_balanced()
    heir = three.leader(GROUP)
    assert await committed(three, heir, GROUP) == 5, "applied, though not answered"
    again = await three.call(heir, "OffsetCommit", commit(GROUP, member_id, generation, 5, **who), 8)
    assert again["topics"][0]["partitions"][0]["errorCode"] == 0, "the same generation, the same member"
    assert await committed(three, heir, GROUP) == 5
    (view,) = [heir.runtime.node.describe_group(GROUP)]
    assert view is not None
    assert [(each.member_id, each.group_instance_id) for each in view.members] == [(member_id, "one")]
    assert (view.state, view.generation) == ("Stable", generation)


async def test_a_node_without_its_store_gives_up_in_time_and_comes_back_by_itself(
    postgres: str, postgres_server: PostgresServer
) -> None:
    async with Wire(postgres_server.port) as wire, cluster(postgres, 1) as nodes:
        through_wire = postgres.replace(f":{postgres_server.port}/", f":{wire.port}/")
        cut = await nodes.start(2, through_wire)
        await nodes.until_balanced()
        group = next(name for name in map(str, range(99)) if nodes.leader(name) is cut)
        member_id, generation = await stable(nodes, cut, group)
        wire.is_closed = True
        wire.break_all()
        await until(lambda: not cut.runtime.leading, "it goes on leading")
        assert (await nodes.call(cut, "Heartbeat", beat(group, member_id, generation), 4))["errorCode"] == (
            ErrorCode.NOT_COORDINATOR
        )
        status, ready = await nodes.look(cut, "/readyz")
        assert status == 503
        assert "store cannot be reached" in ready["problem"]
        assert (await nodes.look(cut, "/healthz"))[0] == 200
        whole = nodes.apps[1].runtime
        await until(lambda: len(whole.leading) == PARTITIONS, "the other one does not take over")
        await until(lambda: len(whole.load_ms) == PARTITIONS, "it does not load")
        answer = await nodes.call(nodes.apps[1], "Heartbeat", beat(group, member_id, generation), 4)
        assert answer["errorCode"] == 0, "its generation is still the group's"
        wire.is_closed = False
        await nodes.until_balanced()
        assert (await nodes.look(cut, "/readyz"))[0] == 200


async def test_without_a_store_no_client_is_sent_to_a_node_whose_leases_have_run_out(
    three: Nodes, postgres_server: PostgresServer
) -> None:
    before = three.leading()
    postgres_server.kill()
    await until(lambda: not three.leading(), "a node goes on leading")
    await until(
        lambda: not any(app.runtime.node.leaders for app in three.apps.values()), "a node is still taken for a leader"
    )
    await until(
        lambda: not any(app.runtime.leadership.view().workers() for app in three.apps.values()), "a node seems alive"
    )
    await until(
        lambda: not any(lease.is_live for app in three.apps.values() for lease in app.runtime.leadership.view().leases),
        "a lease seems to be held",
    )
    for app in three.apps.values():
        assert (await coordinator_of(three, app, GROUP))["errorCode"] == ErrorCode.COORDINATOR_NOT_AVAILABLE
        _, shown = await three.look(app, "/cluster")
        assert [partition["leader"] for partition in shown["partitions"]] == [None] * PARTITIONS
        assert {partition["state"] for partition in shown["partitions"]} == {"free"}
        assert [(node["nodeId"], node["alive"], node["leads"]) for node in shown["nodes"]] == [
            (1, False, 0),
            (2, False, 0),
            (3, False, 0),
        ]
        assert {partition["leaseMsLeft"] for partition in shown["partitions"]} == {0}
    postgres_server.start()
    await three.until_balanced()
    assert three.leading().keys() == before.keys()


async def test_a_log_that_cannot_be_written_costs_commits_and_nothing_else(postgres: str) -> None:
    async with cluster(postgres, 1) as nodes:
        app = nodes.apps[1]
        await create(nodes, app, "orders")
        member_id, generation = await stable(nodes, app, GROUP)
        connection = await asyncpg.connect(postgres)
        try:
            await connection.execute(BREAK)
            answer = await nodes.call(app, "OffsetCommit", commit(GROUP, member_id, generation, 5), 8)
            assert answer["topics"][0]["partitions"][0]["errorCode"] == ErrorCode.NOT_COORDINATOR
            assert (await nodes.call(app, "Heartbeat", beat(GROUP, member_id, generation), 4))["errorCode"] == 0
            assert await committed(nodes, app, GROUP) == -1
            assert (await nodes.look(app, "/readyz"))[0] == 200, "it leads, and others could not do better"
            await connection.execute(MEND)
        finally:
            await connection.close()
        answer = await nodes.call(app, "OffsetCommit", commit(GROUP, member_id, generation, 5), 8)
        assert answer["topics"][0]["partitions"][0]["errorCode"] == 0
        assert await committed(nodes, app, GROUP) == 5


# What a full disk looks like to a node: the statement is refused.
BREAK = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full', MESSAGE = 'could not extend file'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION refuse();
"""
MEND = "DROP TRIGGER full_disk ON log; DROP FUNCTION refuse;"


async def test_a_second_node_of_the_same_number_is_refused_in_plain_words(postgres: str) -> None:
    async with cluster(postgres, 1) as nodes:
        with pytest.raises(StoreProblem, match=r"node 1 is already running at 127.0.0.1:\d+.*broker.id"):
            await App(Options(settings=settings(1), port=0, store=postgres)).start()
        assert len(nodes.apps[1].runtime.leading) == PARTITIONS


async def test_the_next_process_of_a_killed_node_says_what_it_waits_for_and_can_be_stopped_meanwhile(
    postgres: str, tmp_path: Path
) -> None:
    node = NodeProcess(tmp_path, 1, postgres, lease_ms=60_000)
    processes = Cluster(tmp_path, [node])
    try:
        node.start()
        await processes.led_by([node])
        node.send(signal.SIGKILL)
        node.start()
        shown: dict[str, Any] = {}

        async def waits() -> bool:
            shown.update(await processes.look(node, "/readyz") or {})
            return "previous lease" in shown.get("problem", "")

        await processes.until(waits, "no node says what it waits for")
        assert re.fullmatch(r"waiting for node 1's previous lease to expire, [1-9]\d* ms left", shown["problem"])
        assert shown["status"] == "not-ready"
        assert (await processes.look(node, "/healthz"))["status"] == "starting"
        async with processes.session.get(node.url + "/readyz") as ready:
            assert ready.status == 503
        async with processes.session.post(node.url + BY_NAME["FindCoordinator"].path, data="{}") as refused:
            assert (refused.status, (await refused.json(content_type=None))["type"]) == (
                503,
                "urn:rejoin:problem:starting",
            )
        assert node.process is not None
        node.send(signal.SIGTERM)
        assert await asyncio.to_thread(node.process.wait, 120) == 0
    finally:
        await processes.close()
    said = [json.loads(line) for line in (tmp_path / "node-1.log").read_text().splitlines()]
    (waiting,) = [line for line in said if line["event"] == "waiting_for_previous_lease"]
    assert waiting["node_id"] == 1
    assert 0 < waiting["ms_left"] <= 60_000
    assert (said[-1]["event"], said[-1]["started"]) == ("stopped", False)
    assert "node_id_conflict" not in {line["event"] for line in said}


async def test_a_node_with_another_number_of_offsets_partitions_is_refused(postgres: str) -> None:
    async with cluster(postgres, 1):
        app = App(Options(settings=settings(2, offsets_topic_num_partitions=7), port=0, store=postgres))
        with pytest.raises(StoreProblem, match="created with 6 offsets partitions, this node is set to 7"):
            await app.start()


async def test_a_node_asleep_past_its_leases_answers_nothing_before_it_has_given_up(three: Nodes) -> None:
    app = three.leader(GROUP)
    member_id, generation = await stable(three, app, GROUP)
    leadership = app.runtime.leadership
    assert isinstance(leadership, LeaseDriver)
    # As on waking: its clock has gone on, and nothing else has had its turn yet.
    for lease in leadership._leases.held.values():
        lease.valid_until -= 2 * LEASE_MS
    leadership.valid_until -= 2 * LEASE_MS
    # In this moment, before a renewal that is under way makes it take the leases again.
    heartbeat = HeartbeatRequest(group_id=GROUP, generation_id=generation, member_id=member_id)
    answer = await three.ask(app, heartbeat, 4)
    assert answer.error_code is ErrorCode.NOT_COORDINATOR
    assert leadership.counts["expired"] > 0


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://root:geheim@localhost/x", "not the address of a PostgreSQL database"),
        ("postgresql://u:geheim@127.0.0.1:1/x", "cannot be reached"),
    ],
)
async def test_a_store_that_cannot_be_had_is_reported_without_its_password(url: str, says: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "rejoin", "serve", "--port", "0", env={**os.environ, "REJOIN_STORE": url},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await process.communicate()
    assert process.returncode == 2
    assert says in said.decode()
    assert "geheim" not in said.decode()
    assert "Traceback" not in said.decode()


async def test_a_virtual_clock_and_shared_leases_do_not_go_together(postgres: str) -> None:
    with pytest.raises(StartFailed, match="expected real with --store"):
        App(Options(settings=settings(1), store=postgres, control=ControlOptions(clock="virtual")))


async def test_topics_in_a_data_directory_are_there_after_a_restart(tmp_path: Path) -> None:
    options = Options(settings=settings(1), port=0, data=tmp_path / "data", topics=(InitialTopic("orders", 3, 5.0),))
    nodes = Nodes("")
    try:
        async with App(options) as app:
            known = topics(app)
            assert await create(nodes, app, "payments") is ErrorCode.NONE
        async with App(options) as app:
            assert topics(app).keys() == {"orders", "payments"}
            assert topics(app)["orders"] == known["orders"]
            status, shown = await nodes.look(app, "/cluster")
            assert (status, shown["leaseMs"], shown["nodes"][0]["leads"]) == (200, None, PARTITIONS)
            status, answer = await nodes.look(app, "/cluster/partitions/2/resign", "POST")
            assert (status, answer) == (200, {"topic": OFFSETS_TOPIC, "partition": 2, "leading": True}), (
                "alone, it loads it anew"
            )
            assert app.runtime.leading[offsets_partition(2)] > app.runtime.leading[offsets_partition(1)]
    finally:
        await nodes.close()
