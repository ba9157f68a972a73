"""The options of ``rejoin serve``. Showing them must not import the service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from rejoin.coordinator.service.defaults import HOST, MAX_BODY_BYTES, PORT

SHORT: Final = {"-c": "config"}
"""Short names of options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """What can be given on the command line. The texts are those of ``--help``."""

    host: str = HOST
    """Address to listen on."""
    port: int = PORT
    """Port to listen on; 0 picks a free one."""
    kafka_port: str = ""
    """Port for Kafka's own protocol; 0 picks a free one, off listens on none. The default is 9092, or a free one with
    --port 0. The setting listeners takes its place, so give one of the two."""
    as_kafka: str | None = None
    """A release of Kafka to pass for, as 2.8: APIs and versions that are newer are not offered."""
    advertised_host: str | None = None
    """Host that clients connect to. The default is --host, or this machine's name if that is every address."""
    journal: str | None = None
    """Directory for the journal: every event, one line of JSON each."""
    data: str | None = None
    """Directory for groups, offsets and topics. Without it they are lost when the process ends."""
    store: str | None = None
    """Database that several nodes share, as postgresql://USER@HOST:PORT/DATABASE. Each node leads some of the groups
    and needs its own id: -c broker.id=NUMBER. An address with a password is refused here: the variable REJOIN_STORE
    takes it, or PGPASSWORD and PGPASSFILE the password alone."""
    brokers: int = 1
    """Brokers in this process, 1 to 100, without a database: a cluster for tests. Their ids are 1, 2 and so
    on. Ports count up from --port, --kafka-port and the ports of advertised.listeners; data are in memory."""
    config: tuple[str, ...] = ()
    """A setting by Kafka's name, as NAME=VALUE; may be given several times. Wins over the environment, where
    group.max.size is REJOIN_GROUP_MAX_SIZE."""
    topic: tuple[str, ...] = ()
    """A topic to create at startup, as NAME:PARTITIONS or NAME:PARTITIONS:RECORDS_PER_SECOND; may be given several
    times."""
    log_level: Literal["debug", "info", "warning", "error", "critical"] = "info"
    """The least severe level to log. At debug, each request is one line."""
    port_file: Path | None = None
    """File to write the port to once the service listens; with --brokers one on each line."""
    kafka_port_file: Path | None = None
    """File to write the port for Kafka's protocol to; with --brokers one on each line."""
    max_body_bytes: str = str(MAX_BODY_BYTES)
    """Largest request body to accept, in bytes or as 64MiB."""
    control: bool = False
    """Serve the control API under /control, for tests: faults, waiting, the clock, recordings."""
    control_token: str | None = None
    """Refused, as others can read a command line: use --control-token-file, or the variable REJOIN_CONTROL_TOKEN."""
    control_token_file: Path | None = None
    """File whose first line is the token that the control API requires as Authorization: Bearer TOKEN, and so does
    resigning a partition. Required for them unless --host is loopback. The variable REJOIN_CONTROL_TOKEN does the
    same."""
    tls_self_signed: bool = False
    """Speak TLS on all listeners, with an authority and a certificate made now. The log says where the authority's
    certificate is, for the clients."""
    tls_ca_file: Path | None = None
    """File to write that certificate to. The default is a temporary one."""
    users_file: Path | None = None
    """YAML file with the users that may log in; rejoin credentials makes lines for it. With it the listeners want a
    login."""
    insecure: bool = False
    """Listen on addresses that other machines can reach, without any login."""
    clock: str = "real"
    """With --control: real; virtual, which moves only on request; or fast:SPEED, as in fast:5."""
