"""A share consumer's settings: those of other consumers without what a share group decides, and two of its own.

Source: Kafka's ShareConsumerConfig and ConsumerConfig of 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

from pydantic import Field, ValidationError, model_validator

from rejoin.client.config import ConsumerConfig
from rejoin.protocol.validation import sentence

_OF_THE_GROUP: Final = {
    "auto.offset.reset": "set share.auto.offset.reset of the group",
    "enable.auto.commit": "see share.acknowledgement.mode",
    "auto.commit.interval.ms": "acknowledgements travel with the next fetch",
    "group.instance.id": "a share group has no static members",
    "isolation.level": "set share.isolation.level of the group",
    "partition.assignment.strategy": "the coordinator assigns",
    "group.protocol": "a share group has a protocol of its own",
    "group.remote.assignor": "a share group has one assignor",
    "session.timeout.ms": "set share.session.timeout.ms of the group",
    "heartbeat.interval.ms": "set share.heartbeat.interval.ms of the group",
    "max.partition.fetch.bytes": "fetch.max.bytes limits a fetch",
}
"""Settings that a share consumer refuses, with what is there in their place."""


class ShareConsumerConfig(ConsumerConfig):
    """Everything about one share consumer that can be set. Frozen."""

    group_id: str | None = Field(description="The share group to join.")
    enable_auto_commit: bool = Field(default=False, description="Always false: a share group has no positions.")
    share_acknowledgement_mode: Literal["implicit", "explicit"] = Field(
        default="implicit",
        description="implicit accepts the records of a poll with the next poll or commit; explicit demands an "
        "acknowledgement of each.",
    )
    share_acquire_mode: Literal["batch_optimized", "record_limit"] = Field(
        default="batch_optimized",
        description="batch_optimized acquires whole batches, which may be more than max.poll.records; record_limit "
        "never acquires more (KIP-1206).",
    )

    @model_validator(mode="after")
    def _leaves_to_the_group_what_is_the_groups(self) -> Self:
        for name, instead in _OF_THE_GROUP.items():
            if name.replace(".", "_") in self.model_fields_set:
                raise ValueError(f"{name} cannot be set for a share consumer: {instead}")
        if not self.group_id:
            raise ValueError("group.id: a share consumer needs a group")
        return self


def checked_share_config(settings: Mapping[str, Any]) -> ShareConsumerConfig:
    """The configuration of a share consumer. Raises ValueError with one sentence."""
    try:
        return ShareConsumerConfig(**settings)
    except ValidationError as problem:
        raise ValueError(sentence(problem, ShareConsumerConfig, kind="setting")) from None
