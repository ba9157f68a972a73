"""Credentials that a node keeps beside its users file, with the clock by which logins end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.security.delegation_tokens import DelegationTokens
from rejoin.coordinator.core.security.scram_credentials import ScramCredentials


class StoredCredentials(NamedTuple):
    """Changes of the users of SCRAM, and the delegation tokens. ``now`` is the node's clock, in ms since 1970."""

    scram: ScramCredentials
    tokens: DelegationTokens
    now: Callable[[], Millis]


NOTHING_STORED: Final = StoredCredentials(ScramCredentials(), DelegationTokens(""), lambda: 0)
