"""Plans for each version of each API: pass on, rewrite, look at."""

from __future__ import annotations

from typing import Final

from rejoin.protocol.registry import (
    API_VERSIONS,
    DEFINED,
    DESCRIBE_CLUSTER,
    FETCH,
    FIND_COORDINATOR,
    METADATA,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SHARE_FETCH,
    Api,
)
from rejoin.protocol.wire.codec import Codec, codec_of, is_flexible
from rejoin.proxy.rewriting import may_name_endpoints

_ALWAYS_REWRITTEN: Final = frozenset({API_VERSIONS.key, METADATA.key, FIND_COORDINATOR.key, DESCRIBE_CLUSTER.key})
_PASSES: Final = frozenset({FETCH.key, SHARE_FETCH.key})
"""APIs whose answers are large: they pass while they are read."""
_SECRET: Final = frozenset({SASL_HANDSHAKE.key, SASL_AUTHENTICATE.key, 51, 38, 39, 40, 41})
"""APIs with credentials: their bodies are never kept. The last are of users and of delegation tokens."""


class Plan:
    """One version of an API. ``codec`` is none where its form is not known here: then it passes, and is counted."""

    __slots__ = (
        "answer_passes",
        "api",
        "codec",
        "has_acks",
        "is_flexible",
        "is_kept",
        "is_rewritten",
        "key",
        "name",
        "passes",
        "reads",
        "version",
    )

    def __init__(self, key: int, version: int, watched: frozenset[int]) -> None:
        """``watched`` are the keys of APIs whose requests and answers are looked at."""
        self.key = key
        self.version = version
        self.api: Api | None = DEFINED.get(key)
        self.codec: Codec | None = codec_of(key, version)
        self.name = f"API {key}" if self.api is None else self.api.name
        self.is_flexible = self.api is not None and is_flexible(self.api, version)
        self.has_acks = key == PRODUCE.key
        known = self.codec is not None
        names_endpoints = known and self.api is not None and may_name_endpoints(self.api, version)
        self.is_kept = known and key in watched and key not in _SECRET
        """Whether request and answer are kept until both are there."""
        self.is_rewritten = known and (key in _ALWAYS_REWRITTEN or (names_endpoints and key not in _PASSES))
        """Whether the whole answer is held, and may be changed."""
        self.reads = known and key in _PASSES and (names_endpoints or self.is_kept)
        """Whether the answer is read while it passes."""
        self.passes = not self.is_kept and not self.has_acks and key != SASL_HANDSHAKE.key
        """Whether nothing of the request is looked at but key, version and correlation id."""
        self.answer_passes = not (self.is_kept or self.is_rewritten or self.reads)
        """Whether nothing of the answer is looked at but the correlation id."""


class Plans(dict[tuple[int, int], Plan]):
    """The plans by API key and version, each made when first needed. No more are kept than there are versions."""

    def __init__(self, watched: frozenset[int] = frozenset()) -> None:
        super().__init__()
        self.watched = watched

    def __missing__(self, asked: tuple[int, int]) -> Plan:
        plan = Plan(*asked, self.watched)
        if plan.codec is not None:
            self[asked] = plan
        return plan
