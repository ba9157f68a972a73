"""Lines of clients for the tests."""

from __future__ import annotations

from collections.abc import Iterable

from rejoin.pipeline.reading.broker_logs.lines import BrokenLine
from rejoin.pipeline.reading.broker_logs.statements import Statement
from rejoin.pipeline.reading.client_logs.statements import ClientLogFile

MEMBER = "orders-1-0b6ae9a5-6a36-4f1d-9d0c-4ac1b2f3c111"
GENERATION = f"Generation{{generationId=7, memberId='{MEMBER}', protocol='range'}}"


def java(text: str, *, client: str = "orders-1", group: str = "orders") -> str:
    return f"[Consumer clientId={client}, groupId={group}] {text}"


def read(*lines: str | bytes) -> tuple[list[Statement], list[BrokenLine]]:
    """What a file of these lines says, and its lines that are broken."""
    raw = [line if isinstance(line, bytes) else line.encode() for line in lines]
    found = list(ClientLogFile("consumer.log", "consumer").statements(raw))
    broken = [each for each in found if isinstance(each, BrokenLine)]
    return [each for each in found if isinstance(each, Statement)], broken


def kinds(statements: Iterable[Statement]) -> list[str]:
    return [each.kind for each in statements]
