"""Members as a transcript knows them: the next command need not repeat it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupResponse
from rejoin.protocol.messages.share.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from rejoin.protocol.messages.share.share_fetch import ShareFetchRequest, ShareFetchResponse
from rejoin.protocol.messages.share.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

_NO_SESSION: Final = frozenset({ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH})


@dataclass(slots=True, kw_only=True)
class MemberContext:
    """A member's id, generation and protocol by its answers, and the options it joins with.

    Generation -1 and an empty id: it has not joined. The writer and the player keep the same, command by command.
    """

    name: str
    member_id: str = ""
    generation: int = -1
    protocol: str | None = None
    is_modern: bool = False
    """Whether the member speaks the consumer protocol: then ``generation`` is its epoch."""
    is_sharing: bool = False
    """True for a member of a share group: then ``generation`` is its epoch, too."""
    is_streaming: bool = False
    """True for a member of a streams group."""
    session_epoch: int = 0
    """The epoch that its share session expects next; 0: it has none."""
    options: dict[str, str] = field(default_factory=dict)
    """Arguments of its JoinGroups that go for the next ones, too."""
    metadata: dict[tuple[str, str], list[bytes]] = field(default_factory=dict)
    """By protocol and topics: the metadata written so far, in order."""

    def on_join_response(self, response: JoinGroupResponse) -> None:
        """Take over what a JoinGroup was answered."""
        match response.error_code:
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = response.member_id
            case ErrorCode.NONE:
                self.member_id = response.member_id
                self.generation = response.generation_id
                self.protocol = response.protocol_name
                self.is_modern = False
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self.forget()
            case _:
                pass

    def on_heartbeat_response(
        self,
        member_id: str,
        response: ConsumerGroupHeartbeatResponse | ShareGroupHeartbeatResponse | StreamsGroupHeartbeatResponse,
    ) -> None:
        """Take over what a ConsumerGroupHeartbeat was answered; ``member_id`` is the one that it came with."""
        self.is_modern = True
        match response.error_code:
            case ErrorCode.NONE:
                self.member_id = response.member_id or member_id
                self.generation = response.member_epoch
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.FENCED_MEMBER_EPOCH:
                # It joins again under its id.
                self.generation = -1
            case _:
                pass

    def on_share_response(self, request: Request, response: Response) -> None:
        """Take over what a request of a share group was answered; nothing for other requests."""
        match request, response:
            case ShareGroupHeartbeatRequest(), ShareGroupHeartbeatResponse():
                self.is_sharing = True
                self.on_heartbeat_response(request.member_id, response)
            case (
                (ShareFetchRequest() | ShareAcknowledgeRequest()),
                (ShareFetchResponse() | ShareAcknowledgeResponse()),
            ):
                if response.error_code is ErrorCode.NONE:
                    self.session_epoch = request.share_session_epoch + 1
                elif response.error_code in _NO_SESSION:
                    self.session_epoch = 0
            case _:
                pass

    def on_streams_response(self, request: Request, response: Response) -> None:
        """Take over what a StreamsGroupHeartbeat was answered; nothing for other requests."""
        if isinstance(request, StreamsGroupHeartbeatRequest) and isinstance(response, StreamsGroupHeartbeatResponse):
            self.is_streaming = True
            self.on_heartbeat_response(request.member_id, response)

    def forget(self) -> None:
        """Be a new member."""
        self.member_id, self.generation = "", -1
