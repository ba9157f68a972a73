"""Looking around: groups, topics, events in ranges and live, metrics, health, the page."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from rejoin.coordinator.commands.journal_schema import journal_schema
from rejoin.protocol.records.consumer_offsets import offsets_partition
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import Harness, join

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="runs the page's script in Node.js")


async def test_groups_are_listed_and_shown_whole(node: Harness) -> None:
    await node.topic("orders", 2)
    member_id = await node.stable("orders-app")
    (summary,) = (await node.get("/groups"))["groups"]
    assert (summary["groupId"], summary["state"], summary["generation"], summary["members"]) == (
        "orders-app",
        "Stable",
        1,
        1,
    )
    group = await node.get("/groups/orders-app")
    assert group["leader"] == member_id
    assert group["members"][0]["assignment"] == {"orders": [0]}
    assert group["offsets"] == []


async def test_committed_offsets_are_shown_with_their_lag(node: Harness) -> None:
    await node.call("CreateTopics", _topic_with_records("orders", 10))
    node.clock.advance(2_000)
    partition = {"partitionIndex": 0, "committedOffset": 5, "committedMetadata": "m"}
    commit = {"groupId": "g", "memberId": "", "topics": [{"name": "orders", "partitions": [partition]}]}
    await node.call("OffsetCommit", commit)
    (offset,) = (await node.get("/groups/g"))["offsets"]
    assert (offset["offset"], offset["logEndOffset"], offset["lag"], offset["metadata"]) == (5, 20, 15, "m")


def _topic_with_records(name: str, rate: int) -> dict[str, Any]:
    configs = [{"name": "emulator.records.per.second", "value": str(rate)}]
    topic = {"name": name, "numPartitions": 1, "replicationFactor": -1, "assignments": [], "configs": configs}
    return {"topics": [topic]}


async def test_group_ids_may_be_anything(node: Harness) -> None:
    for group_id, path in (("a/b?c", "a%2Fb%3Fc"), ("ü ✓", "%C3%BC%20%E2%9C%93")):
        await node.member_id(group_id)
        assert (await node.get(f"/groups/{path}"))["groupId"] == group_id


async def test_what_is_not_there_is_not_found_and_the_likeliest_name_is_suggested(node: Harness) -> None:
    await node.topic("orders", 1)
    await node.member_id("orders-app")
    for path, near in (("/groups/order-app", "orders-app"), ("/topics/order", "orders")):
        answered = await node.request("GET", path)
        assert answered.status == 404
        assert near in answered.json["detail"]


async def test_topics_are_listed_and_shown(node: Harness) -> None:
    await node.topic("orders", 3)
    (topic,) = (await node.get("/topics"))["topics"]
    assert topic == await node.get("/topics/orders")
    assert (topic["topic"], topic["partitions"], topic["endOffsets"]) == ("orders", 3, [0, 0, 0])


async def test_health_is_ok_when_every_partition_is_served(node: Harness) -> None:
    assert await node.get("/healthz") == {"status": "ok", "nodeId": 1, "partitions": {"active": 50}}
    node.log.hold_reads = True
    node.app.runtime.elect(offsets_partition(7))
    answered = await node.request("GET", "/healthz")
    assert (answered.status, answered.json["partitions"]) == (200, {"active": 49, "loading": 1})
    ready = await node.request("GET", "/readyz")
    assert (ready.status, ready.json["problem"]) == (503, "loading")


async def test_head_answers_like_get_without_a_body(node: Harness) -> None:
    answered = await node.request("HEAD", "/healthz")
    assert (answered.status, answered.body) == (200, b"")


async def test_the_page_needs_nothing_from_elsewhere(node: Harness) -> None:
    answered = await node.request("GET", "/list")
    assert answered.headers["Content-Type"] == "text/html; charset=utf-8"
    page = answered.body.decode()
    assert not re.findall(r"""(?:src|href)=["']?(?:https?:)?//""", page)
    assert len(page.splitlines()) < 450


async def test_what_the_page_asks_for_is_answered(node: Harness) -> None:
    await node.stable("orders-app")
    page = (await node.request("GET", "/list")).body.decode()
    asked = re.findall(r"""(?:fetch|new EventSource)\(["`]([^"`]+)["`]\)""", page)
    assert len(asked) == page.count("fetch(") + page.count("new EventSource(") == 4
    stand = await node.get(f"/{next(path for path in asked if 'limit=' in path)}")
    for path in asked:
        filled = path.replace("${encodeURIComponent(group.groupId)}", "orders-app")
        filled = re.sub(r"\$\{Math.max\(first - 1, head - MOST_ROWS\)\}", str(stand["first"] - 1), filled)
        assert "$" not in filled, filled
        assert (await node.request("GET", f"/{filled}")).status == 200, filled


PAGE_IN_NODE = """
// Just enough of a browser for the page: elements, and a stream of the events that are given.
class Element {
  constructor() { this.children = []; this.own = ""; this.style = { setProperty() {} }; this.isConnected = true; }
  set textContent(text) { this.own = text; this.children = []; }
  get textContent() { return this.own + this.children.map(each => each.textContent ?? each).join(""); }
  get childElementCount() { return this.children.length; }
  get lastChild() { return { remove: () => this.children.pop() }; }
  append(...given) { this.children.push(...given); }
  prepend(given) { this.children.unshift(given); }
  replaceChildren(...given) { this.children = given; }
}
const elements = {}, asked = [];
// What is shown is printed once no timer is left.
const wait = setTimeout;
let timers = 0;
globalThis.setTimeout = (call, ms) => {
  timers += 1;
  wait(() => { call(); timers -= 1; setImmediate(() => timers || print()); }, ms);
};
globalThis.document = {
  getElementById: id => elements[id] ??= new Element(), createElement: () => new Element(),
};
globalThis.fetch = async path => {
  asked.push(path);
  return { ok: true, json: async () => GIVEN[path] ?? GIVEN.group };
};
globalThis.EventSource = class {
  constructor(path) { asked.push(path); setTimeout(() => this.onopen()); }
  addEventListener(name, call) {
    for (const event of GIVEN.rows) if (event.event === name) setTimeout(() => call({ data: JSON.stringify(event) }));
  }
};
globalThis.setInterval = () => {};
function print() {
  console.log(JSON.stringify({ asked, events: elements.events.children.map(each => each.children[1].textContent),
    groups: elements.groups.children.map(each => each.textContent) }));
  process.exit(0);
}
"""


def shown_by_the_page(page: str, given: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    """What the page's script makes of some answers and events."""
    script = tmp_path / "page.js"
    source = re.search(r"<script>(.*)</script>", page, re.DOTALL)
    assert source is not None
    script.write_text(f"const GIVEN = {json.dumps(given)};{PAGE_IN_NODE}{source[1]}")
    ended = subprocess.run(["node", str(script)], capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@needs_node
async def test_the_page_shows_what_happens_and_folds_commits(node: Harness, tmp_path: Path) -> None:
    page = (await node.request("GET", "/list")).body.decode()
    commit = {"event": "offsets_committed", "at_ms": 0, "group_id": "g", "member_id": "m", "offsets": [{}, {}]}
    rows = [{**commit, "at_ms": at} for at in range(500)]
    removed = {"event": "member_removed", "at_ms": 500, "group_id": "h", "member_id": "x", "cause": "session-expiry"}
    group = {"groupId": "..", "state": "Stable", "members": [], "offsets": [], "generation": 7}
    given = {
        "events?limit=0": {"head": 501, "first": 1},
        "groups": {"groups": [{"groupId": "..", "members": 1}]},
        "group": group,
        "rows": [removed, *rows],
    }
    found = shown_by_the_page(page, given, tmp_path)
    assert found["asked"][-1] == "groups?id=.."
    assert found["groups"] == ["..Stablegeneration 7"]
    commits, other = found["events"]
    assert commits.startswith("g  m committed 500 times, last 2 offsets at ")
    assert other == "h  x sent no heartbeat within its session timeout"


@pytest.mark.parametrize("name", ["..", ".", "a/b", "?", "100%"])
async def test_a_group_of_any_name_can_be_looked_at(node: Harness, name: str) -> None:
    await node.stable(name)
    assert (await node.get(f"/groups?id={quote(name, safe='')}"))["groupId"] == name
    assert (await node.request("GET", "/groups?name=x")).status == 400


async def test_the_page_has_words_for_every_event(node: Harness) -> None:
    page = (await node.request("GET", "/list")).body.decode()
    missing = [name for name in journal_schema().events if f"{name}:" not in page]
    assert missing == []


@pytest.mark.parametrize(("interval_ms", "state"), [(0, "reconciling"), (15_000, "assigning")])
async def test_metrics_count_consumer_groups_by_state(serve: Serve, interval_ms: int, state: str) -> None:
    node = await serve(group_consumer_assignment_interval_ms=interval_ms)
    await node.topic("orders", 2)
    for member_id in "ab":
        joining = {"groupId": "g", "memberId": member_id, "memberEpoch": 0, "rebalanceTimeoutMs": 60_000}
        subscription = {"subscribedTopicNames": ["orders"], "topicPartitions": []}
        assert (await node.call("ConsumerGroupHeartbeat", joining | subscription, 1))["errorCode"] == 0
    samples = _samples((await node.request("GET", "/metrics")).body.decode())
    names = ("assigning", "reconciling", "stable")
    counts = {name: samples[f"kafka_coordinator_group_group_metadata_manager_num_groups_{name}"] for name in names}
    assert counts == dict.fromkeys(names, 0) | {state: 1}


async def test_metrics_have_kafkas_names_and_count(node: Harness) -> None:
    await node.topic("orders", 2)
    await node.stable("g")
    await node.call("Heartbeat", {"groupId": "g", "generationId": 9, "memberId": "x"})
    answered = await node.request("GET", "/metrics")
    assert answered.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    samples = _samples(answered.body.decode())
    manager, coordinator = "kafka_coordinator_group_group_metadata_manager_", "kafka_server_group_coordinator_metrics_"
    assert samples[manager + "num_groups"] == 1
    assert samples[manager + "num_groups_stable"] == 1
    assert samples[manager + "num_groups_assigning"] == samples[manager + "num_groups_reconciling"] == 0
    assert samples[coordinator + "group_completed_rebalance_count"] == 1
    assert samples[coordinator + 'num_partitions{state="active"}'] == 50
    assert samples['kafka_network_request_metrics_requests_total{error="UNKNOWN_MEMBER_ID",request="Heartbeat"}'] == 1
    assert samples['kafka_network_request_metrics_remote_time_ms_count{request="JoinGroup"}'] == 1
    assert samples['kafka_network_request_metrics_total_time_ms_bucket{le="+Inf",request="Heartbeat"}'] == 1
    assert samples['rejoin_rebalances_started_total{cause="join-new"}'] == 1
    assert samples["rejoin_rebalance_unavailable_ms_total"] == 3_000
    assert samples["rejoin_partitions_regained_total"] == 1
    assert samples["rejoin_members"] == 1


async def test_what_is_written_together_is_counted_by_appends_and_nothing_else(serve: Serve, tmp_path: Path) -> None:
    """Elections and topics go into the same transactions."""
    node = await serve({"data": tmp_path / "data", "clock": None})
    await node.topic("orders", 1)
    async with asyncio.timeout(60):
        while (await node.get("/healthz"))["status"] != "ok":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    partition = {"partitionIndex": 0, "committedOffset": 5, "committedMetadata": ""}
    for number in range(6):
        body = {"groupId": f"g-{number}", "topics": [{"name": "orders", "partitions": [partition]}], "memberId": ""}
        answer = await node.call("OffsetCommit", {**body, "generationIdOrMemberEpoch": -1}, 8)
        assert answer["topics"][0]["partitions"][0]["errorCode"] == 0
    samples = _samples((await node.request("GET", "/metrics")).body.decode())
    assert samples["rejoin_store_append_ms_count"] == 6
    assert samples["rejoin_store_batch_appends_sum"] == 6
    assert samples["rejoin_store_batch_appends_count"] == samples["rejoin_store_batch_ms_count"] <= 6


def _samples(page: str) -> dict[str, float]:
    """The samples of a page, each of whose lines must be well formed."""
    samples: dict[str, float] = {}
    typed = set()
    for line in page.splitlines():
        if line.startswith("# TYPE "):
            name = line.split()[2]
            assert name not in typed
            typed.add(name)
        elif not line.startswith("# HELP "):
            assert re.fullmatch(r'[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.+e-]+', line), line
            name, _, value = line.rpartition(" ")
            assert name not in samples
            samples[name] = float(value)
    return samples


async def test_a_join_that_is_parked_is_seen_in_the_metrics(node: Harness) -> None:
    member_id = await node.member_id("g")
    joining = await node.parked("JoinGroup", join("g", member_id))
    samples = _samples((await node.request("GET", "/metrics")).body.decode())
    assert samples["rejoin_parked_joins"] == 1
    assert samples['kafka_server_delayed_operation_purgatory_purgatory_size{delayed_operation="Rebalance"}'] == 1
    node.clock.advance(3_000)
    await joining


async def test_a_list_of_many_groups_lets_other_requests_pass(node: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    core = node.app.runtime.node
    passes = 0
    seen: set[int] = set()
    monkeypatch.setattr(core, "group_ids", lambda: [f"g-{number}" for number in range(1_000)])
    monkeypatch.setattr(core, "summarize_group", lambda group_id: seen.add(passes))
    listing = asyncio.ensure_future(node.get("/groups"))
    while not listing.done():
        passes += 1
        await asyncio.sleep(0)
    assert (await listing)["groups"] == []
    assert len(seen) >= 4
