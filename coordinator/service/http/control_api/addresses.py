"""The addresses that clients are sent to."""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.control.advertising import AdvertisedAddress
from rejoin.coordinator.service.http.control_api.answers import AdvertisedAnswer
from rejoin.coordinator.service.http.control_api.operation import ControlOperation
from rejoin.coordinator.service.http.server import CONTROL

ADDRESSES: Final = (
    ControlOperation(
        "POST",
        CONTROL + "/advertise",
        "send clients of a listener to another address, as that of a mapped port",
        AdvertisedAddress,
        AdvertisedAnswer,
        lambda control, wanted, _: control.advertise(wanted),
    ),
)
