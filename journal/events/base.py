"""The base of events. An event is emitted once, by the core that decided it.

The coordinator's events are in ``coordinator``, ``consumer_groups``, ``share_groups``, ``share_partitions`` and
``transactions``, the consumer's in ``client``, the simulation's in ``simulation``. Log lines, the live page,
transcripts, journal rows and tables are all made from them; ``journal.segments`` says how they are kept.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict

Long = Annotated[int, "64 bits"]
"""A number that may need 64 bits. Others that are no length of time (``_ms``) fit into 32."""

PartitionsByTopic = dict[str, list[int]]
"""Topic to partitions, both ascending."""


class Event(BaseModel):
    """An event. Frozen; the class name in snake_case is its name everywhere outside Python.

    A process emits few of the events that there are, so a model is built when it is first used.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: ClassVar[str] = "event"

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls.name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
