"""A client of a controlled node, with the requests of consumers and those of tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import aiohttp

from rejoin.coordinator.service.app import App
from rejoin.protocol.registry import BY_NAME
from tests.coordinator.service.helpers import HttpAnswer, join, sync


class ControlledNode:
    """A running node with its control API."""

    def __init__(self, app: App, session: aiohttp.ClientSession) -> None:
        self.app = app
        self.session = session

    async def request(self, method: str, path: str, body: Any = None, **headers: str) -> HttpAnswer:
        """Any request; a body is sent as JSON."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if method == "POST":
            named.setdefault("Content-Type", "application/json")
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        url = f"{self.app.url}{path}"
        async with self.session.request(
            method, url, data=data, headers=named, skip_auto_headers=["Content-Type"]
        ) as got:
            return HttpAnswer(got, await got.read())

    async def control(self, method: str, path: str, **body: Any) -> Any:
        """A request to the control API that is granted; its answer."""
        answered = await self.request(method, f"/control{path}", body if method == "POST" else None)
        assert answered.status == 200, answered.body.decode()
        return answered.json if answered.headers["Content-Type"] == "application/json" else answered.body.decode()

    async def refused(self, method: str, path: str, **body: Any) -> tuple[int, str]:
        """A request to the control API that is refused: status and what it says."""
        answered = await self.request(method, f"/control{path}", body if method == "POST" else None)
        assert answered.status >= 400, answered.body.decode()
        return answered.status, answered.json["detail"]

    async def call(
        self, api: str, body: dict[str, Any], version: int | None = None, client_id: str = "app", **headers: str
    ) -> Any:
        """One of Kafka's requests; the answer's body."""
        if version is not None:
            headers["Kafka_Api_Version"] = str(version)
        answered = await self.request("POST", BY_NAME[api].path, body, Kafka_Client_Id=client_id, **headers)
        assert answered.status == 200, answered.body.decode()
        return answered.json

    def asking(self, api: str, body: dict[str, Any], client_id: str = "app") -> asyncio.Task[Any]:
        """A request whose answer is looked at later."""
        return asyncio.ensure_future(self.call(api, body, client_id=client_id))

    async def advance(self, millis: int) -> Any:
        """Let so much time pass."""
        return await self.control("POST", "/clock", advance_ms=millis)

    async def stable(self, group: str = "g", client_id: str = "app", **fields: Any) -> str:
        """A group of one dynamic member, Stable in generation 1, with all of ``orders``; its member id."""
        member_id: str = (await self.call("JoinGroup", join(group, **fields), client_id=client_id))["memberId"]
        joining = self.asking("JoinGroup", join(group, member_id, **fields), client_id)
        await self.control("POST", "/groups/wait", group=group, waiting=1)
        await self.control("POST", "/clock", until="next")
        assert (await joining)["generationId"] == 1
        assigned = sync(group, member_id, 1, {member_id: {"orders": [0, 1, 2]}})
        assert (await self.call("SyncGroup", assigned, client_id=client_id))["errorCode"] == 0
        return member_id

    async def beat(self, member_id: str, group: str = "g", generation: int = 1, client_id: str = "app") -> int:
        """A heartbeat; the error code of its answer."""
        body = {"groupId": group, "generationId": generation, "memberId": member_id}
        answer = await self.call("Heartbeat", body, client_id=client_id)
        return int(answer["errorCode"])

    async def group(self, group: str = "g") -> Any:
        """A group as it is, or none."""
        answered = await self.request("GET", f"/groups/{group}")
        return answered.json if answered.status == 200 else None

    async def until(self, condition: Coroutine[Any, Any, Any]) -> Any:
        """Wait for something that comes by itself."""
        async with asyncio.timeout(60):
            return await condition
