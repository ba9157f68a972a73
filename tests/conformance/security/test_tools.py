"""Recorded outputs of Kafka's tools for ACLs, quotas and users."""

from __future__ import annotations

import json

from conformance.clients.admin.tool_commands import runs
from conformance.clients.admin.tools import RECORDED, arranged


def test_the_recording_has_an_output_of_each_run() -> None:
    """Otherwise: ``make client-security-tools RECORD=--record``."""
    recorded = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    assert [each["run"] for each in recorded] == [[tool, *given] for tool, given in runs()]
    assert all(each["out"] or each["err"] for each in recorded if each["code"])


def test_outputs_are_compared_without_the_order_of_maps() -> None:
    printed = """Current ACLs for resource `b`:
 \t(principal=User:b)
\t(principal=User:a)

Current ACLs for resource `a`:
 \t(principal=User:c)

only [WRITE, READ] at 127.0.0.1:9092
\tat org.apache.kafka.Some.method(Some.java:1)
Quota configs for user-principal 'b' are x=1.0
Quota configs for user-principal 'a' are x=1.0
Option                                   Description
--add                                    Adds
"""
    assert arranged(printed).splitlines() == [
        "Current ACLs for resource `a`:",
        "(principal=User:c)",
        "Current ACLs for resource `b`:",
        "(principal=User:a)",
        "(principal=User:b)",
        "only [READ, WRITE] at HOST:PORT",
        "Quota configs for user-principal 'a' are x=1.0",
        "Quota configs for user-principal 'b' are x=1.0",
    ]
