"""A consumer loses its session and comes back. Usage: python lost_session.py http://127.0.0.1:9095

The coordinator runs with ``--control --clock virtual --topic orders:3``. Nothing but Python's own library is used.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

GROUP = "orders-app"
SUBSCRIPTION = "AAAAAAABAAZvcmRlcnP/////"  # ConsumerProtocol: topics [orders]
ASSIGNMENT = "AAAAAAABAAZvcmRlcnMAAAADAAAAAAAAAAEAAAAC/////w=="  # orders 0, 1, 2


class Steps:
    """The steps of the test, against one coordinator."""

    def __init__(self, url: str) -> None:
        self._url = url

    def post(self, path: str, **body: Any) -> Any:
        headers = {"Content-Type": "application/json", "Kafka-Client-Id": "app"}
        try:
            with urlopen(Request(self._url + path, json.dumps(body).encode(), headers), timeout=30) as answer:
                return json.load(answer)
        except HTTPError as problem:
            raise SystemExit(f"{path}: {json.load(problem)['detail']}") from None
        except OSError as problem:
            raise SystemExit(f"{self._url}{path}: {problem}") from None

    def join(self, member_id: str) -> Any:
        protocols = [{"name": "range", "metadata": SUBSCRIPTION}]
        return self.post(
            "/v1/join-group",
            groupId=GROUP,
            sessionTimeoutMs=45_000,
            rebalanceTimeoutMs=300_000,
            memberId=member_id,
            groupInstanceId=None,
            protocolType="consumer",
            protocols=protocols,
            reason=None,
        )

    def heartbeat(self, member_id: str, generation: int) -> Any:
        return self.post("/v1/heartbeat", groupId=GROUP, generationId=generation, memberId=member_id)["errorCode"]

    def become_stable(self, generation: int) -> str:
        member_id: str = self.join("")["memberId"]
        with ThreadPoolExecutor(1) as aside:
            joining = aside.submit(self.join, member_id)
            self.post("/control/groups/wait", group=GROUP, waiting=1)
            self.post("/control/clock", advance_ms=3_000)  # the initial rebalance delay
            expect("generation", joining.result()["generationId"], generation)
        self.post(
            "/v1/sync-group",
            groupId=GROUP,
            generationId=generation,
            memberId=member_id,
            groupInstanceId=None,
            protocolType="consumer",
            protocolName="range",
            assignments=[{"memberId": member_id, "assignment": ASSIGNMENT}],
        )
        self.post("/control/groups/wait", group=GROUP, state="Stable", members=1, assigned=3)
        return member_id

    def run(self) -> None:
        first = self.become_stable(1)
        expect("heartbeat in time", self.heartbeat(first, 1), 0)
        fired = self.post("/control/clock", advance_ms=45_000)["fired"]  # and no heartbeat comes
        expect("what fired", ",".join(each["timer"] for each in fired), "session")
        expect("heartbeat too late (25 is UNKNOWN_MEMBER_ID)", self.heartbeat(first, 1), 25)
        second = self.become_stable(3)  # generation 2 was the one without members
        expect("heartbeat of the new member", self.heartbeat(second, 3), 0)
        self.post("/control/reset")  # nothing is left for the next test
        print("it came back")


def expect(what: str, found: object, wanted: object) -> None:
    """Print what is seen, and end if it is not what it should be."""
    if found != wanted:
        raise SystemExit(f"{what}: expected {wanted}, got {found}")
    print(f"{what}: {found}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python lost_session.py http://127.0.0.1:9095")
    Steps(sys.argv[1]).run()
