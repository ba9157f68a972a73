"""Clients on a real Kafka, directly and through ``rejoin proxy``: ``python -m conformance.before_kafka.clients``.

Each play is what a client goes through in ``make clients``, on a broker of its own. A step has to end through the proxy
as it does without it: where one fails, the play is repeated directly. A play with a difference is repeated once, since
what a broker says of settings follows its controller by moments. Results are written into docs/proxy.md as they come.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from conformance.before_kafka.results import ProxiedResult, keep
from conformance.before_kafka.stand import ProxiedKafka
from conformance.clients import consumer_groups, share_groups, tools
from conformance.clients.programs import CLIENTS
from conformance.clients.step_table import play
from conformance.clients.streams_groups.lives import LIVES
from conformance.clients.streams_groups.playing import played
from conformance.kafka.broker import class_path, kafka_version

SECONDS: Final = 900.0
STREAMS: Final = "Kafka Streams"


@dataclass(frozen=True)
class ClientPlay:
    """The life of a client: its steps with their problems, on a broker with these settings."""

    name: str
    version: str
    steps: Callable[[str], Iterable[tuple[str, str]]]
    settings: Mapping[str, str] = field(default_factory=dict)


def _program(command: Callable[[], list[str]], servers: str) -> Iterable[tuple[str, str]]:
    lines = play([*command(), servers], SECONDS)
    return ((line["step"], line["problem"]) for line in lines if "step" in line)


def _texts(settings: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in settings.items()}


def _plays() -> dict[str, ClientPlay]:
    """Every play by its name, but for the applications of Kafka Streams."""
    versions = {client.name: client.version for client in CLIENTS}
    found = [ClientPlay(client.name, client.version, partial(_program, client.life)) for client in CLIENTS]
    found.append(ClientPlay(tools.NAME, tools.VERSION, tools.run_steps))
    for kind, module in (("consumer groups", consumer_groups), ("share groups", share_groups)):
        found += [
            ClientPlay(f"{name}, {kind}", versions[name], partial(_program, command), _texts(module.SETTINGS))
            for name, command in module.PROGRAMS.items()
        ]
    return {each.name: each for each in found}


PLAYS: Final = _plays()


async def _behind(each: ClientPlay, jars: str) -> ProxiedResult:
    async with ProxiedKafka(jars, settings=each.settings) as kafka:
        found = dict(await asyncio.to_thread(lambda: list(each.steps(kafka.proxy.bootstrap_servers))))
        defects = await kafka.defects()
        print(f"{each.name}: {kafka.proxy.counts()}", flush=True)
    return ProxiedResult(each.name, each.version, {}, found, defects)


async def _directly(each: ClientPlay, jars: str) -> dict[str, str]:
    async with ProxiedKafka(jars, settings=each.settings) as kafka:
        return dict(await asyncio.to_thread(lambda: list(each.steps(kafka.direct))))


async def _result(name: str, jars: str) -> ProxiedResult:
    if name == STREAMS:
        proxied = await played("proxied", jars, LIVES)
        result = ProxiedResult(STREAMS, kafka_version(), {}, proxied.problems, proxied.defects)
    else:
        result = await _behind(PLAYS[name], jars)
    if not result.is_alike:
        direct = (
            (await played("kafka", jars, LIVES)).problems if name == STREAMS else await _directly(PLAYS[name], jars)
        )
        result = replace(result, directly=direct)
    return result


async def run(names: list[str]) -> int:
    """Play, print and keep the results; 1 where the proxy made a difference."""
    jars = await class_path()
    differing = 0
    for name in names:
        result = await _result(name, jars)
        if not result.is_alike:
            print(f"{name} is repeated: {'; '.join(result.lines())}", flush=True)
            result = await _result(name, jars)
        for line in result.lines():
            print(f"{name} {result.version}  {line}", flush=True)
        keep(result)
        differing += not result.is_alike
    return 1 if differing else 0


def main() -> int:
    """The command line."""
    known = [*PLAYS, STREAMS]
    parser = argparse.ArgumentParser(prog="python -m conformance.before_kafka.clients", description=__doc__)
    parser.add_argument("play", nargs="*", choices=[*known, []], metavar="PLAY", help=f"of {'; '.join(known)}; or all")
    return asyncio.run(run(parser.parse_args().play or known))


if __name__ == "__main__":
    sys.exit(main())
