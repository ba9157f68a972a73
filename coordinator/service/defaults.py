"""Defaults of a node's options. Also imported by code that only shows the options."""

from __future__ import annotations

from typing import Final

HOST: Final = "127.0.0.1"
PORT: Final = 9095
KAFKA_PORT: Final = 9092
"""The port of Kafka's own protocol."""

BACKLOG: Final = 4_096
"""Connections of a listener that may wait to be accepted."""

MAX_BODY_BYTES: Final = 104_857_600
"""Largest body taken, Kafka's ``socket.request.max.bytes``."""

HEAD_SECONDS: Final = 20.0
"""How long the head of a request may take to arrive."""

BODY_SECONDS: Final = 30.0
"""How long a body may take to arrive."""
