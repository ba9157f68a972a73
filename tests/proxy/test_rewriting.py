"""Answers that name brokers: clients find the proxy's addresses in them, and nothing else is changed."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.api_versions import ApiVersion, ApiVersionsResponse
from rejoin.protocol.messages.cluster.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from rejoin.protocol.messages.cluster.find_coordinator import Coordinator, FindCoordinatorResponse, no_coordinator
from rejoin.protocol.messages.leader_hints import NodeEndpoint
from rejoin.protocol.messages.records.fetch import FetchResponse
from rejoin.protocol.messages.records.produce import ProduceResponse
from rejoin.protocol.messages.share.share_fetch import ShareFetchResponse
from rejoin.protocol.registry import FETCH, METADATA
from rejoin.protocol.wire.codec import codec_of
from rejoin.proxy.rewriting import lowered, rewritten, rewritten_tail


class Ours:
    """Broker N is at port 9000 + N of a host of the proxy's."""

    def __init__(self, host: str = "proxy") -> None:
        self.host = host

    def local(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        return self.host, 9_000 + node_id


def endpoint(host: str, port: int) -> NodeEndpoint:
    return NodeEndpoint(node_id=1, host=host, port=port)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (
            FindCoordinatorResponse(node_id=2, host="b2", port=9_092),
            FindCoordinatorResponse(node_id=2, host="proxy", port=9_002),
        ),
        (
            FindCoordinatorResponse(
                coordinators=(
                    Coordinator(key="g", node_id=2, host="b2", port=9_092),
                    no_coordinator("h", ErrorCode.COORDINATOR_NOT_AVAILABLE),
                )
            ),
            FindCoordinatorResponse(
                coordinators=(
                    Coordinator(key="g", node_id=2, host="proxy", port=9_002),
                    no_coordinator("h", ErrorCode.COORDINATOR_NOT_AVAILABLE),
                )
            ),
        ),
        (
            DescribeClusterResponse(brokers=(DescribeClusterBroker(broker_id=3, host="b3", port=1),)),
            DescribeClusterResponse(brokers=(DescribeClusterBroker(broker_id=3, host="proxy", port=9_003),)),
        ),
        (
            ProduceResponse(node_endpoints=(endpoint("b1", 1),)),
            ProduceResponse(node_endpoints=(endpoint("proxy", 9_001),)),
        ),
    ],
    ids=lambda response: type(response).__name__,
)
def test_brokers_are_the_proxys(theirs: Response, ours: Response) -> None:
    assert rewritten(theirs, Ours()) == ours


@pytest.mark.parametrize(
    "response",
    [
        FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, node_id=-1, port=-1),
        DescribeClusterResponse(
            endpoint_type=2, brokers=(DescribeClusterBroker(broker_id=3, host="controller", port=1),)
        ),
        ProduceResponse(),
    ],
)
def test_what_names_no_broker_stays(response: Response) -> None:
    assert rewritten(response, Ours()) is response


@pytest.mark.parametrize("shorter", [0, *range(2, 12), 129, 130, 131])
@pytest.mark.parametrize(("key", "version", "answer"), [(FETCH.key, 16, FetchResponse), (78, 2, ShareFetchResponse)])
def test_the_end_of_an_answer_keeps_its_length(key: int, version: int, answer: Any, shorter: int) -> None:
    codec = codec_of(key, version)
    assert codec is not None
    theirs = answer(node_endpoints=(endpoint("b" * 200, 9_092),))
    body = codec.write_response(theirs)
    tail = body[len(codec.write_response(answer())) - (2 if answer is ShareFetchResponse else 1) :]
    changed = rewritten_tail(codec, theirs, tail, Ours("p" * (200 - shorter)))
    assert len(changed) == len(tail)
    assert codec.read_response(body[: -len(tail)] + changed, 0) == answer(
        node_endpoints=(endpoint("p" * (200 - shorter), 9_001),)
    )


@pytest.mark.parametrize(
    ("host", "theirs"), [("p" * 300, "b" * 140), ("proxy.example", "b1"), ("p", "b2"), ("p", "b" * 200)]
)
def test_endpoints_that_do_not_fit_are_left_out(host: str, theirs: str) -> None:
    codec = codec_of(FETCH.key, 17)
    assert codec is not None
    response = FetchResponse(node_endpoints=(endpoint(theirs, 9_092),))
    body = codec.write_response(response)
    tail = body[len(codec.write_response(FetchResponse())) - 1 :]
    changed = codec.read_response(body[: -len(tail)] + rewritten_tail(codec, response, tail, Ours(host)), 0)
    assert changed == FetchResponse(node_endpoints=(endpoint(host, 9_001),) if len(theirs) - len(host) > 1 else ())


def test_versions_whose_answers_cannot_be_rewritten_are_not_offered() -> None:
    unknown = ApiVersion(api_key=999, min_version=0, max_version=9)
    join = ApiVersion(api_key=11, min_version=2, max_version=40)
    metadata = ApiVersion(api_key=METADATA.key, min_version=0, max_version=99)
    offered = lowered(ApiVersionsResponse(api_keys=(unknown, join, metadata)), "")
    assert offered.api_keys == (
        unknown,
        join,
        ApiVersion(api_key=METADATA.key, min_version=0, max_version=METADATA.max_version),
    )
    assert lowered(offered, "") is offered


def test_an_older_release_lowers_versions_and_raises_none() -> None:
    metadata = ApiVersion(api_key=METADATA.key, min_version=0, max_version=5)
    newer = ApiVersion(api_key=68, min_version=0, max_version=1)
    join = ApiVersion(api_key=11, min_version=0, max_version=9)
    offered = lowered(ApiVersionsResponse(api_keys=(metadata, newer, join)), "2.8")
    assert offered.api_keys == (metadata, ApiVersion(api_key=11, min_version=0, max_version=7))
