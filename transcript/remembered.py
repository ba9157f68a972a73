"""What a member of a transcript remembers: so much need not be said in the next command."""

from __future__ import annotations

from dataclasses import dataclass

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.join_group import JoinGroupResponse


@dataclass(slots=True, kw_only=True)
class Remembered:
    """What is left of the answers that a member got. Generation -1 and an empty id: it has not joined."""

    member_id: str = ""
    generation: int = -1
    protocol: str | None = None

    def remember(self, answer: JoinGroupResponse) -> None:
        """Take in what a JoinGroup was answered."""
        match answer.error_code:
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
            case ErrorCode.NONE:
                self.member_id = answer.member_id
                self.generation = answer.generation_id
                self.protocol = answer.protocol_name
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self.forget()
            case _:
                pass

    def forget(self) -> None:
        """Be somebody new."""
        self.member_id, self.generation = "", -1
