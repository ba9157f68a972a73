"""Wrappers that tools put around a line, one function for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

AT: Final = datetime(2025, 3, 9, 7, 5, 3, 250_000, UTC)


def _iso(nth: int, digits: int = 9) -> str:
    at = AT + timedelta(seconds=nth)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{f'{at.microsecond:06}000'[:digits]}Z"


def _csv(*cells: str) -> str:
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)


def _syslog(nth: int) -> str:
    at = AT + timedelta(seconds=nth)
    return f"{at:%b} {at.day:>2} {at:%H:%M:%S}"


WRAPPERS: Final[Mapping[str, Callable[[str, int], str]]] = {
    "compose": lambda line, nth: f"billing-2  | {line}",
    "compose in colour": lambda line, nth: f"\x1b[33mbilling-2  |\x1b[0m {line}",
    "compose -t": lambda line, nth: f"billing-2  | {_iso(nth)} {line}",
    "kubectl --prefix": lambda line, nth: f"[pod/billing-6d4c7-zq8lm/worker] {line}",
    "kubectl --timestamps": lambda line, nth: f"{_iso(nth)} {line}",
    "kubectl --prefix --timestamps": lambda line, nth: f"[pod/billing-6d4c7-zq8lm/worker] {_iso(nth)} {line}",
    "kail": lambda line, nth: f"payments/billing-6d4c7-zq8lm[worker]: {line}",
    "CRI": lambda line, nth: f"{_iso(nth)} stderr F {line}",
    "docker's JSON": lambda line, nth: json.dumps({"log": f"{line}\n", "stream": "stderr", "time": _iso(nth)}),
    "journald": lambda line, nth: f"{_syslog(nth)} ip-10-0-0-7 billing[811]: {line}",
    "journald with ISO times": lambda line, nth: f"{_iso(nth, 6)[:-1]}+0000 ip-10-0-0-7 billing[811]: {line}",
    "journald's JSON": lambda line, nth: json.dumps(
        {"__REALTIME_TIMESTAMP": str(1_741_503_903_250_000 + nth), "_HOSTNAME": "ip-10", "MESSAGE": line}
    ),
    "syslog of RFC 5424": lambda line, nth: f"<134>1 {_iso(nth, 3)} ip-10-0-0-7 billing 811 - - {line}",
    "Filebeat": lambda line, nth: json.dumps(
        {"@timestamp": _iso(nth, 3), "@metadata": {"beat": "filebeat"}, "message": line, "host": {"name": "ip-10"}}
    ),
    "Loki": lambda line, nth: json.dumps({"labels": {"app": "billing"}, "line": line, "timestamp": _iso(nth)}),
    "GCP's text": lambda line, nth: json.dumps({"textPayload": line, "timestamp": _iso(nth), "insertId": "k3"}),
    "GCP's JSON": lambda line, nth: json.dumps({"jsonPayload": {"message": line}, "timestamp": _iso(nth)}),
    "Elasticsearch": lambda line, nth: json.dumps({"_id": "a", "_source": {"message": line, "@timestamp": _iso(nth)}}),
    "Datadog's CSV": lambda line, nth: _csv(_iso(nth, 3), "ip-10-0-0-7", "billing", line),
    "aws logs tail": lambda line, nth: f"{_iso(nth, 6)[:-1]}+00:00 ecs/billing/9f3c2a {line}",
    "heroku": lambda line, nth: f"{_iso(nth, 6)[:-1]}+00:00 app[worker.2]: {line}",
    "GitHub Actions": lambda line, nth: f"{_iso(nth, 7)[:-1]}Z {line}",
    "grep -n": lambda line, nth: f"{nth + 118}:{line}",
    "grep over files": lambda line, nth: f"logs/billing.log:{nth + 118}:{line}",
    "Markdown": lambda line, nth: f"> {line}",
    "Markdown, twice": lambda line, nth: f">> {line}",
    "an indent": lambda line, nth: f"    {line}",
    "CRLF": lambda line, nth: f"{line}\r",
    "a byte order mark": lambda line, nth: f"\ufeff{line}",
    "HTML": lambda line, nth: line.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;"),
}
