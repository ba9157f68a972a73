"""Several brokers, and the leaders of partitions."""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.control.broker_actions import LinkEnds, NewLeader, PartitionsQuery
from rejoin.coordinator.service.http.control_api.answers import (
    BrokerAnswer,
    BrokersAnswer,
    LeaderAnswer,
    MovesAnswer,
    PartitionsAnswer,
)
from rejoin.coordinator.service.http.control_api.operation import ControlOperation, NoFields
from rejoin.coordinator.service.http.server import CONTROL

BROKERS: Final = (
    ControlOperation(
        "GET",
        CONTROL + "/brokers",
        "the state of each broker",
        NoFields,
        BrokersAnswer,
        lambda control, *_: control.broker_actions.all(),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/brokers/{id}/stop",
        "stop a broker cleanly: leaders move first",
        NoFields,
        BrokerAnswer,
        lambda control, _, broker: control.broker_actions.stop(broker),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/brokers/{id}/kill",
        "kill a broker, as kill -9 would",
        NoFields,
        BrokerAnswer,
        lambda control, _, broker: control.broker_actions.kill(broker),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/brokers/{id}/start",
        "start a broker that is stopped",
        NoFields,
        BrokerAnswer,
        lambda control, _, broker: control.broker_actions.start(broker),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/brokers/{id}/pause",
        "pause a broker: it accepts connections and does not answer",
        NoFields,
        BrokerAnswer,
        lambda control, _, broker: control.broker_actions.pause(broker),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/brokers/{id}/resume",
        "resume a paused broker",
        NoFields,
        BrokerAnswer,
        lambda control, _, broker: control.broker_actions.resume(broker),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/brokers/{id}/cut",
        "cut a broker off from clients, the controller or other brokers",
        LinkEnds,
        BrokerAnswer,
        lambda control, ends, broker: control.broker_actions.cut_off(ends, broker),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/brokers/{id}/heal",
        "reconnect a broker to clients, controller and brokers",
        NoFields,
        BrokerAnswer,
        lambda control, _, broker: control.broker_actions.heal(broker),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/partitions/move",
        "move the leader of a partition to another broker",
        NewLeader,
        LeaderAnswer,
        lambda control, wanted, _: control.broker_actions.move(wanted),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/partitions/elect-preferred",
        "elect the preferred leader of every partition",
        NoFields,
        MovesAnswer,
        lambda control, *_: control.broker_actions.elect_preferred(),
    ),
    ControlOperation(
        "GET",
        CONTROL + "/partitions",
        "leaders, epochs and replicas of partitions",
        PartitionsQuery,
        PartitionsAnswer,
        lambda control, wanted, _: control.broker_actions.partitions(wanted),
        in_query=True,
    ),
)
