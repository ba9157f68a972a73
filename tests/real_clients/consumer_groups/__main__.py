"""The tests of this folder, a line of JSON for each: ``python -m tests.real_clients.consumer_groups``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

STEPS: Final = {
    "test_three_members_become_four_and_one_is_killed": ("three members", "a fourth joins", "one is killed"),
    "test_a_static_member_that_restarts_causes_no_rebalance": ("a static member restarts",),
    "test_a_regular_expression_begins_to_match": ("a regular expression begins to match",),
    "test_a_topic_grows": ("a topic grows",),
    "test_a_group_moves_to_the_consumer_protocol_and_back_while_it_consumes": (
        "from classic to consumer",
        "back to classic",
    ),
}


class Printed:
    """Prints the steps of each test when it has ended."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            crash = getattr(report.longrepr, "reprcrash", None)
            lines = (report.longreprtext if crash is None else crash.message).strip().splitlines()
            problem = "" if report.passed else " ".join(lines[:3])
            for step in STEPS[report.nodeid.split("::")[1]]:
                print("\n" + json.dumps({"step": step, "problem": problem}), flush=True)
            for what, number in report.user_properties:
                print(json.dumps({"count": what, "number": number}), flush=True)


if __name__ == "__main__":
    pytest.main(["-q", "-s", "-p", "no:cacheprovider", str(Path(__file__).parent)], plugins=[Printed()])
