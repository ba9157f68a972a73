"""The watch: what it writes is read as a broker's request log, and a full disk stops nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rejoin.pipeline.reading.broker_logs.lines import Record
from rejoin.pipeline.reading.request_log import LoggedExchange, read_exchange
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.proxy.line_file import LineFile
from rejoin.proxy.watch import RequestWatch
from tests.proxy.wire import ScriptedBroker, proxied

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def exchanges(path: Path) -> list[LoggedExchange]:
    found = []
    for number, line in enumerate(path.read_text().splitlines()):
        message = line.partition("DEBUG ")[2].removesuffix(" (kafka.request.logger)")
        exchange = read_exchange(Record(number, 0, "DEBUG", "", message))
        assert isinstance(exchange, LoggedExchange), line
        found.append(exchange)
    return found


async def test_exchanges_are_lines_of_a_request_log(tmp_path: Path) -> None:
    path = tmp_path / "kafka-request.log"
    watch = RequestWatch(LineFile(path))
    refused = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    broker = ScriptedBroker({"ApiVersions": ApiVersionsResponse(), "Heartbeat": refused})
    async with proxied(broker, watch) as stand:
        client = await stand.client()
        await client.ask(ApiVersionsRequest(client_software_name="lib", client_software_version="1.2"), 3)
        await client.ask(HEARTBEAT)
    watch.close()
    (line,) = exchanges(path)
    assert (line.api, line.group_id, line.member_id) == ("HEARTBEAT", "g", "m")
    assert (line.error, line.client_id, line.software) == ("REBALANCE_IN_PROGRESS", "c", "lib 1.2")


async def test_of_heartbeats_that_say_nothing_new_the_first_and_the_last_are_written(tmp_path: Path) -> None:
    path = tmp_path / "kafka-request.log"
    watch = RequestWatch(LineFile(path))
    answers = [HeartbeatResponse()] * 5 + [HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)]
    broker = ScriptedBroker({"Heartbeat": lambda _: answers.pop(0)})
    async with proxied(broker, watch) as stand:
        client = await stand.client()
        for _ in range(6):
            await client.ask(HEARTBEAT)
    watch.close()
    assert [line.error for line in exchanges(path)] == [None, None, "UNKNOWN_MEMBER_ID"]


async def test_a_full_disk_stops_nothing_and_is_counted() -> None:
    file = LineFile(Path("/dev/full"))
    async with proxied(ScriptedBroker({"Heartbeat": HeartbeatResponse()}), RequestWatch(file)) as stand:
        client = await stand.client()
        answer: Any = await client.ask(HEARTBEAT)
        assert answer.error_code is ErrorCode.NONE
    file.close()
    assert file.lost == 1
