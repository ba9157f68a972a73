"""docker-compose.yml, as far as it can be checked without Docker: what it names is there, and its commands are ours."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import Any

import pytest
import yaml

from rejoin.commands import build
from rejoin.coordinator.commands.secret_options import STORE_VARIABLE
from rejoin.coordinator.commands.serve import topic_from
from rejoin.coordinator.config import settings_from
from rejoin.coordinator.service.defaults import PORT
from rejoin.coordinator.service.stores import check_url
from tests import paths

COMPOSE: dict[str, Any] = yaml.safe_load((paths.ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]


def with_profile(*profiles: str) -> set[str]:
    return {name for name, service in SERVICES.items() if not service.get("profiles") or profiles}


def test_without_a_profile_there_is_one_coordinator_and_no_database() -> None:
    assert with_profile() == {"coordinator", "consumer-1", "consumer-2", "consumer-3"}


def test_a_cluster_is_a_database_three_coordinators_and_consumers() -> None:
    names = [name for name, service in SERVICES.items() if service.get("profiles") == ["cluster"]]
    assert names == ["postgres", "node-1", "node-2", "node-3", "cluster-consumer-1", "cluster-consumer-2"]
    nodes = [SERVICES[f"node-{number}"] for number in (1, 2, 3)]
    assert [node["environment"]["REJOIN_BROKER_ID"] for node in nodes] == ["1", "2", "3"]
    assert len({node["environment"][STORE_VARIABLE] for node in nodes}) == 1
    assert len({node["ports"][0] for node in nodes}) == 3


def test_the_file_is_valid() -> None:
    checker = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    file = paths.ROOT / "docker-compose.yml"
    said = subprocess.run([*checker, file], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout


def test_the_dashboard_shows_every_coordinator() -> None:
    [job] = yaml.safe_load((paths.ROOT / "examples/prometheus/prometheus.yml").read_text())["scrape_configs"]
    [found] = job["dns_sd_configs"]
    serving = [name for name, each in SERVICES.items() if each.get("command", "").startswith("rejoin serve")]
    assert found["names"] == serving
    assert found["port"] == PORT
    [source] = yaml.safe_load((paths.ROOT / "examples/grafana/datasources.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    [provider] = yaml.safe_load((paths.ROOT / "examples/grafana/dashboards.yml").read_text())["providers"]
    folder, grafana = provider["options"]["path"], SERVICES["grafana"]
    assert grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == f"{folder}/consumer-groups.json"
    assert f"./examples/grafana/consumer-groups.json:{folder}/consumer-groups.json:ro" in grafana["volumes"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_can_be_started(name: str) -> None:
    service = SERVICES[name]
    for other, how in service.get("depends_on", {}).items():
        assert how == {"condition": "service_healthy"}
        # The image has a check of its own, for coordinators.
        assert "healthcheck" in SERVICES[other] or SERVICES[other]["build"] == "."
        assert not SERVICES[other].get("profiles") or SERVICES[other]["profiles"] == service.get("profiles")
    for volume in service.get("volumes", ()):
        source = volume.split(":")[0]
        assert source in COMPOSE["volumes"] or (paths.ROOT / source).is_file()
    if "build" not in service:
        return
    assert service["read_only"]
    rejoin, *arguments = shlex.split(service["command"])
    assert rejoin == "rejoin"
    _, bound, _ = build().parse_args(arguments, exit_on_error=False, print_error=False)
    options = bound.arguments["options"]
    if arguments[0] == "serve":
        environment = service.get("environment", {})
        settings_from((), environment)
        for topic in options.topic:
            topic_from(topic)
        if STORE_VARIABLE in environment:
            check_url(environment[STORE_VARIABLE])
        assert options.advertised_host == name, "the other services call it by this name"
        assert "healthcheck" not in service, "that of the image"
    else:
        assert arguments[0] == "consume"
        assert service["healthcheck"] == {"disable": True}, "a consumer has no port"
        servers = [server.removeprefix("http://").split(":") for server in options.bootstrap.split(",")]
        assert [host for host, _ in servers] == list(service["depends_on"])
        assert {port for _, port in servers} == {"9095"}
