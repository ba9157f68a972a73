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
    """Options of the command line. The texts are those of ``--help``."""

    host: str = HOST
    """Address to listen on."""
    port: int = PORT
    """Port for HTTP; 0 picks a free one."""
    kafka_port: str = ""
    """Port for Kafka's protocol; 0 picks a free one, off turns the protocol off. The default is 9092, or a free port
    with --port 0. The setting listeners replaces this option."""
    as_kafka: str | None = None
    """Kafka release to emulate, such as 2.8. Newer APIs and versions are not offered."""
    advertised_host: str | None = None
    """Host in the addresses that clients get in metadata. The default is --host. If that is a wildcard such as 0.0.0.0,
    each client is sent to the host that it connected to, or with --store to this machine's name."""
    journal: str | None = None
    """Directory for the journal, which has every event as one line of JSON."""
    data: str | None = None
    """Directory for groups, offsets and topics. Without it they are lost when the process ends."""
    store: str | None = None
    """Database shared by several nodes, as postgresql://USER@HOST:PORT/DATABASE. Each node leads some of the groups and
    needs its own id: -c broker.id=NUMBER. The password comes from PGPASSWORD or PGPASSFILE, or within the whole address
    from REJOIN_STORE."""
    brokers: int = 1
    """Number of brokers in this process, 1 to 100: a cluster for tests, without a database. Their ids are 1, 2 and so
    on. Ports count up from --port, --kafka-port and the ports of advertised.listeners. Data is kept in memory."""
    config: tuple[str, ...] = ()
    """A setting by Kafka's name; may be given several times. It overrides the environment, where group.max.size is
    REJOIN_GROUP_MAX_SIZE."""
    topic: tuple[str, ...] = ()
    """A topic to create at startup, as NAME:PARTITIONS or NAME:PARTITIONS:RECORDS_PER_SECOND; may be given several
    times."""
    log_level: Literal["debug", "info", "warning", "error", "critical"] = "info"
    """Least severe level to log. At debug every request is logged. With COMMAND, info counts as warning."""
    port_file: Path | None = None
    """File to write the port to once the service listens; with --brokers, one port on each line."""
    kafka_port_file: Path | None = None
    """File to write the port for Kafka's protocol to; with --brokers, one port on each line."""
    ready_file: Path | None = None
    """File to write the addresses to, as JSON, once clients can connect. They are printed, too."""
    evidence: Path = Path("rejoin-evidence")
    """With COMMAND: directory in which a failed command leaves the journal, a transcript and why.txt."""
    max_body_bytes: str = str(MAX_BODY_BYTES)
    """Size of the largest request to accept, in bytes or with a unit, such as 64MiB."""
    control: bool = False
    """Serve the control API for tests under /control: faults, waiting for states, the clock, recordings. With COMMAND
    it is always there."""
    control_token_file: Path | None = None
    """File with a token on its first line. The control API and the resigning of partitions then require the header
    Authorization: Bearer TOKEN. A token is needed unless --host is loopback; REJOIN_CONTROL_TOKEN can hold it, too."""
    tls_self_signed: bool = False
    """Speak TLS on all listeners, with a certificate authority made at startup. The log names the file with the
    authority's certificate, which clients need."""
    tls_ca_file: Path | None = None
    """File to write the authority's certificate to. The default is a temporary file."""
    users_file: Path | None = None
    """YAML file with the users who may log in, as rejoin credentials prints them. The listeners then require a
    login."""
    insecure: bool = False
    """Listen on addresses that other machines can reach, without any login."""
    clock: str = "real"
    """With --control: real; virtual, which moves only on request; or fast:SPEED, such as fast:5."""
