"""A plugin of pytest: aiokafka's tests on a broker that runs already, ``BROKER=HOST:PORT`` in the environment.

Fixtures that start containers are replaced. The caller leaves out tests of logins, ACLs and TLS, which need more than
the broker. The plugin is loaded in an environment of its own, so it imports nothing else of this project.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


def _stand_in() -> ModuleType:
    """A module with the names of docker's client that the tests mention."""
    docker: Any = ModuleType("docker")
    docker.models = SimpleNamespace(containers=SimpleNamespace(Container=object))
    return docker  # type: ignore[no-any-return]


sys.modules["docker"] = _stand_in()


def _server() -> SimpleNamespace:
    host, _, port = os.environ["BROKER"].rpartition(":")
    ports = dict.fromkeys(("ssl_port", "sasl_plain_port", "sasl_ssl_port"), 0)
    return SimpleNamespace(host=host, port=int(port), hosts=[f"{host}:{port}"], container=None, **ports)


_REPLACED = {
    "docker": SimpleNamespace,
    "kafka_image": lambda: "kafka",
    "ssl_folder": Path,
    "kafka_server": _server,
    "acl_manager": SimpleNamespace,
    "kafka_config": SimpleNamespace,
    "kerberos_utils": SimpleNamespace,
}


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Any:
    """The value of a fixture that is replaced."""
    make: Any = _REPLACED.get(fixturedef.argname)
    if make is None:
        return None
    value = make()
    fixturedef.cached_result = (value, fixturedef.cache_key(request), None)
    return value
