"""StreamsGroupTopologyDescriptionUpdate (key 93): a member describes its topology for people (KIP-1331)."""

from __future__ import annotations

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.streams.topology_description import TopologyDescription
from rejoin.protocol.types import GroupId, Int32, MemberId


class StreamsGroupTopologyDescriptionUpdateRequest(Request):
    """The description of the topology of this epoch. The coordinator asks for it in the response to a heartbeat."""

    group_id: GroupId
    member_id: MemberId
    topology_epoch: Int32
    topology_description: TopologyDescription

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return StreamsGroupTopologyDescriptionUpdateResponse(error_code=error)


class StreamsGroupTopologyDescriptionUpdateResponse(Response):
    """Success, or why the description is refused."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
