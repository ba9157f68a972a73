"""The command ``rejoin proxy``: stands between clients and a Kafka cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from rejoin.coordinator.service.defaults import PORT

_Settings: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        name=("--config", "-c"),
        negative=(),
        help="A setting of the proxy's own listeners, as ssl.keystore.location, named as for rejoin serve; may be "
        "given several times.",
        metavar="NAME=VALUE",
    ),
]
_SelfSigned: TypeAlias = Annotated[
    bool, Parameter(negative=(), help="Speak TLS with clients, with a certificate authority made at startup.")
]
_AuthorityFile: TypeAlias = Annotated[
    Path | None, Parameter(help="File to write the authority's certificate to.", metavar="FILE")
]
_UsersFile: TypeAlias = Annotated[
    Path | None,
    Parameter(
        help="YAML file with the users who may log in, as rejoin credentials prints them. Logins then end at the "
        "proxy; without it they pass to the brokers.",
        metavar="FILE",
    ),
]
_Insecure: TypeAlias = Annotated[
    bool,
    Parameter(negative=(), help="Let other machines use the login of --command-config without one of their own."),
]

_AsKafka: TypeAlias = Annotated[
    str, Parameter(name="--as-kafka", help="Offer clients the versions of this release at most.", metavar="RELEASE")
]
_TokenFile: TypeAlias = Annotated[
    Path | None, Parameter(help="File with the token of the control API; needed beyond 127.0.0.1.", metavar="FILE")
]


def run(
    *,
    bootstrap_server: Annotated[
        str, Parameter(name="--bootstrap-server", help="The cluster: brokers separated by commas.", metavar="HOST:PORT")
    ],
    listen: Annotated[
        str,
        Parameter(help="Where clients connect; the brokers behind get ports above it.", metavar="HOST:PORT"),
    ] = "127.0.0.1:9092",
    advertised_host: Annotated[
        str, Parameter(help="The host that clients are sent to; the default is that of --listen.", metavar="HOST")
    ] = "",
    command_config: Annotated[
        str | None, Parameter(help="Properties file with TLS and SASL towards the cluster.", metavar="FILE")
    ] = None,
    config: _Settings = (),
    tls_self_signed: _SelfSigned = False,
    tls_ca_file: _AuthorityFile = None,
    users_file: _UsersFile = None,
    insecure: _Insecure = False,
    journal: Annotated[
        Path | None,
        Parameter(help="Directory for what clients said about groups; rejoin report and why read it.", metavar="DIR"),
    ] = None,
    as_kafka: _AsKafka = "",
    control: Annotated[
        bool, Parameter(negative=(), help="Serve the control API under /control: faults, requests, groups.")
    ] = False,
    control_port: Annotated[
        int, Parameter(help="The port of the control API, on the host of --listen; 0 takes any.", metavar="PORT")
    ] = PORT,
    control_token_file: _TokenFile = None,
    drain_seconds: Annotated[
        float, Parameter(help="How long requests in flight have to be answered at the end.", metavar="SECONDS")
    ] = 10.0,
) -> int:
    """Stand between clients and a Kafka-compatible cluster, and pass on what they say to each other."""
    from rejoin.proxy.commands.running import (  # noqa: PLC0415 (help can do without)
        WantedControl,
        WantedProtection,
        WantedProxy,
        main,
    )

    return main(
        WantedProxy(
            bootstrap_server,
            listen,
            advertised_host,
            command_config,
            journal,
            as_kafka,
            drain_seconds,
            WantedControl(control_port, control_token_file) if control else None,
            WantedProtection(config, tls_self_signed, tls_ca_file, users_file, insecure),
        )
    )
