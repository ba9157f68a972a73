"""The address that clients of a listener are sent to, where it is known only after the start: behind a mapped port."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from rejoin.coordinator.control.fault_injection.bodies import Body
from rejoin.protocol.brokers.listener_address import HIGHEST_PORT, check_advertised_host


def _checked(host: str) -> str:
    check_advertised_host(host)
    return host


class AdvertisedAddress(Body):
    """An address at which clients reach a listener."""

    host: Annotated[str, AfterValidator(_checked)] = Field(description="a host name or an IP address")
    port: int = Field(ge=1, le=HIGHEST_PORT, description="the port at that host")
    listener: str | None = Field(default=None, description="the listener's name; unless given, the first one")
