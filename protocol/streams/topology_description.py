"""Descriptions of topologies for people: nodes, and what flows into what (KIP-1331)."""

from __future__ import annotations

from rejoin.protocol.message import Struct
from rejoin.protocol.types import Int8, TopicName


class TopologyNode(Struct):
    """A node. Types: 1 source, 2 processor, 3 sink."""

    name: str
    node_type: Int8
    source_topics: tuple[TopicName, ...]
    sink_topic: TopicName | None = None
    stores: tuple[str, ...]
    successors: tuple[str, ...]


class SubtopologyNodes(Struct):
    """The nodes of a subtopology."""

    subtopology_id: str
    nodes: tuple[TopologyNode, ...]


class GlobalStoreNodes(Struct):
    """The two nodes of a global store."""

    source: TopologyNode
    processor: TopologyNode


class TopologyDescription(Struct):
    """A topology with all of its nodes."""

    subtopologies: tuple[SubtopologyNodes, ...]
    global_stores: tuple[GlobalStoreNodes, ...]
