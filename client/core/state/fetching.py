"""Fetching, as a consumer remembers it: nodes, leaders, sessions and what is buffered."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from rejoin.client.core.effects import Endpoint
from rejoin.client.core.fetch.fetched import FetchedBatches
from rejoin.client.core.fetch.session import FetchSessionHandler
from rejoin.client.core.inputs import Millis
from rejoin.protocol.types import TopicPartition


class LeaderAndEpoch(NamedTuple):
    """The node that leads a partition, and its epoch."""

    node_id: int
    epoch: int


@dataclass(slots=True)
class ClusterCache:
    """The nodes, and what they lead, as far as records are fetched. Epochs never go back while the topic id stays."""

    nodes: dict[int, Endpoint] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    leaders: dict[TopicPartition, LeaderAndEpoch] = field(default_factory=dict)
    asked_topics: set[str] = field(default_factory=set)
    """Topics that questions were about; they are asked for beside the subscribed ones."""


class BufferedFetch(NamedTuple):
    """Fetched records of a partition that are not handed out yet."""

    partition: TopicPartition
    batches: FetchedBatches


@dataclass(slots=True)
class FetchState:
    """Fetching: at most one request in flight to each node. Keys are node ids."""

    sessions: dict[int, FetchSessionHandler] = field(default_factory=dict)
    in_flight: dict[int, int] = field(default_factory=dict)
    retry_at: dict[int, Millis] = field(default_factory=dict)
    buffered: deque[BufferedFetch] = field(default_factory=deque)
