"""The addresses of a node or of several brokers, as a program reads them that has waited for the start."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson

from rejoin.atomic_file import atomic_file
from rejoin.coordinator.service.app import App
from rejoin.output import print_json

_OPTION: Final = "--ready-file"


def addresses(nodes: Sequence[App]) -> dict[str, Any]:
    """Where clients connect: to all nodes, and to each. ``tls_ca`` is the authority's certificate, a file or None."""
    return {
        "bootstrap_servers": ",".join(node.bootstrap_servers for node in nodes if node.bootstrap_servers),
        "url": nodes[0].url,
        "pid": os.getpid(),
        "tls_ca": nodes[0].security.ca_location or None,
        "nodes": [
            {"node_id": node.node_id, "bootstrap_servers": node.bootstrap_servers, "url": node.url} for node in nodes
        ],
    }


def publish(nodes: Sequence[App], file: Path) -> None:
    """Write the addresses to a file, and print them as a line of JSON. Raises FileNotWritten."""
    found = addresses(nodes)
    with atomic_file(_OPTION, file) as handle:
        handle.write(orjson.dumps(found).decode() + "\n")
    with suppress(BrokenPipeError, ValueError):  # the output has no reader, or is closed
        print_json(found, flush=True)
