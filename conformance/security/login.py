"""Plays the scripts of logins: each step sends something, and has an answer or the end of the connection.

The frames are written by hand, so that what goes over the socket does not depend on our own codec.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
import struct
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from rejoin.protocol.sasl.scram import ScramClient

SCRIPTS: Final = Path(__file__).parent / "scripts.yaml"
CLOSED: Final = "closed"
PATIENCE_SECONDS: Final = 20.0

Step: TypeAlias = dict[str, Any]
Principal: TypeAlias = Callable[["LoginPlayer"], Coroutine[Any, Any, Any]]
"""Finds out who a broker takes the client of a connection for."""

_SECRETS: Final = re.compile(r"(r=|s=|v=)[^,]+")


def load() -> dict[str, dict[str, list[Step]]]:
    """The scripts by listener and name."""
    found: dict[str, dict[str, list[Step]]] = yaml.safe_load(SCRIPTS.read_text())
    return found


class LoginPlayer:
    """Plays one script. ``contexts`` has what a client trusts and shows, by name; none: it does without TLS."""

    def __init__(
        self, host: str, port: int, contexts: Mapping[str, ssl.SSLContext | None], principal: Principal
    ) -> None:
        self._address = host, port
        self._contexts = contexts
        self._principal = principal
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._sent: list[Callable[[], Coroutine[Any, Any, Any]]] = []
        self._scram: ScramClient | None = None
        self._challenge = b""
        self.client_port = 0

    async def play(self, steps: list[Step]) -> list[Any]:
        """The answer of each step, up to the end of the connection."""
        answers: list[Any] = []
        is_closed = False
        for step in steps:
            kind = next(iter(step))
            if is_closed and kind != "connect":
                continue
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    answers.append(await self._do(kind, step))
                is_closed = False
            except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
                answers.append(CLOSED)
                is_closed = True
        self.close()
        return answers

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _do(self, kind: str, step: Step) -> Any:
        if kind == "connect":
            self.close()
            await self._connect(step[kind])
            return "connected"
        if kind == "principal":
            return await self._principal(self)
        send = self._sender(kind, step)
        if kind != "again":
            self._sent.append(send)
        return await send()

    def _sender(self, kind: str, step: Step) -> Callable[[], Coroutine[Any, Any, Any]]:
        value = step[kind]
        match kind:
            case "api-versions":
                return lambda: self._api_versions(value)
            case "handshake":
                return lambda: self._handshake(value, step.get("version", 1))
            case "plain":
                return self._tokens("\0{}\0{}".format(*value).encode(), step)
            case "token":
                return self._tokens(value.encode(), step)
            case "raw":
                return self._tokens(value.encode(), {"raw": True})
            case "oauth":
                return self._tokens(_oauth(value, step.get("expires", 600), step.get("as")), step)
            case "scram-first":
                mechanism, name, password = value
                self._scram = ScramClient(mechanism, name, password, f"nonce{time.monotonic_ns()}")
                return self._tokens(self._scram.first(), step)
            case "scram-final":
                assert self._scram is not None, "scram-first comes before"
                final = self._scram.evaluate(self._challenge)
                assert final is not None, "the exchange goes on"
                return self._tokens(_changed(final, step.get("change")), step)
            case "heartbeat":
                return self._heartbeat
            case "again":
                return self._sent[value]
            case "bytes":
                return lambda: self._answered(bytes.fromhex(value))
            case "size":
                return lambda: self._raw(struct.pack(">i", value))
            case "part":
                return lambda: self._write(bytes.fromhex(value))
            case "client-hello":
                return lambda: self._client_hello(value)
            case "end":
                return self._end
            case "idle":
                return self._idle
        raise ValueError(f"there is no step {kind}")

    # --- requests

    async def request(self, key: int, version: int, body: bytes, *, flexible: bool = False) -> bytes:
        """The body of the response to a request, and for a flexible one the tags ahead of it, too."""
        tags = b"\0" if flexible else b""
        answer = await self._answered(struct.pack(">hhih", key, version, 7, 4) + b"test" + tags + body)
        assert answer[:4] == struct.pack(">i", 7), "the answer to this request"
        return answer[4:]

    async def _api_versions(self, version: int) -> dict[str, Any]:
        body = b"\0\x05test\x021\0" if version >= 3 else b""
        return {"error": _int16(await self.request(18, version, body))}

    async def _handshake(self, mechanism: str, version: int) -> dict[str, Any]:
        answer = await self.request(17, version, _string(mechanism))
        count, at, mechanisms = struct.unpack_from(">i", answer, 2)[0], 6, []
        for _ in range(count):
            size = _int16(answer, at)
            mechanisms.append(answer[at + 2 : at + 2 + size].decode())
            at += 2 + size
        return {"error": _int16(answer), "mechanisms": sorted(mechanisms)}

    def _tokens(self, token: bytes, step: Step) -> Callable[[], Coroutine[Any, Any, Any]]:
        if step.get("raw"):
            return lambda: self._raw_token(token)
        return lambda: self._authenticate(token, step.get("version", 1))

    async def _raw_token(self, token: bytes) -> dict[str, Any]:
        answer = await self._answered(token)
        return {"token": self._take(answer)}

    async def _authenticate(self, token: bytes, version: int) -> dict[str, Any]:
        if version == 2:
            return await self._authenticate_flexibly(token)
        answer = await self.request(36, version, struct.pack(">i", len(token)) + token)
        size = _int16(answer, 2)
        at = 4 + max(size, 0)
        (length,) = struct.unpack_from(">i", answer, at)
        found = {
            "error": _int16(answer),
            "message": answer[4:at].decode() if size >= 0 else None,
            "token": self._take(answer[at + 4 : at + 4 + length]),
        }
        if version >= 1:
            (lifetime_ms,) = struct.unpack_from(">q", answer, at + 4 + length)
            found["lifetime"] = "some" if lifetime_ms else "none"
        return found

    async def _authenticate_flexibly(self, token: bytes) -> dict[str, Any]:
        """Version 2, whose lengths are one more than they say, and which ends with tags."""
        body = bytes([len(token) + 1]) + token + b"\0"
        answer = await self.request(36, 2, body, flexible=True)
        at = 4 + max(answer[3] - 1, 0)
        end = at + answer[at]
        return {
            "error": _int16(answer, 1),
            "message": answer[4:at].decode() if answer[3] else None,
            "token": self._take(answer[at + 1 : end]),
            "lifetime": "some" if any(answer[end : end + 8]) else "none",
        }

    async def _heartbeat(self) -> dict[str, Any]:
        return {"error": _int16(await self.request(12, 0, _string("g") + struct.pack(">i", 1) + _string("m")))}

    def _take(self, token: bytes) -> str:
        """A token of the broker as it is recorded: without what is different each time."""
        text = token.decode()
        if text.startswith("r="):
            self._challenge = token
        elif text.startswith("v=") and self._scram is not None:
            self._scram.evaluate(token)  # it is checked
        return _SECRETS.sub(r"\1...", text) if text.startswith(("r=", "v=")) else text

    # --- half handshakes

    async def _write(self, data: bytes) -> str:
        """Send what is no whole message, so that no answer is due."""
        _, writer = self._streams or await self._connect()
        writer.write(data)
        await writer.drain()
        return "sent"

    async def _client_hello(self, size: int | None) -> Any:
        """Send the first bytes of a ClientHello; or all of it, and get the type of the record that answers."""
        context = self._contexts["default"]
        assert context is not None, "the listener has TLS"
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        with suppress(ssl.SSLWantReadError):
            context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
        await self._write(outgoing.read()[:size])
        if size is not None:
            return "sent"
        assert self._streams is not None, "something was sent"
        return {"record": (await self._streams[0].readexactly(1))[0]}

    async def _end(self) -> str:
        """Send no more, and wait for the end."""
        _, writer = self._streams or await self._connect()
        writer.write_eof()
        return await self._idle()

    async def _idle(self) -> str:
        """Do nothing, and wait for the end."""
        reader, _ = self._streams or await self._connect()
        while await reader.read(4_096):
            pass
        raise ConnectionResetError

    # --- bytes

    async def _connect(self, how: str = "") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        context = self._contexts[how or "default"]
        host = "localhost" if context is not None else None
        reader, writer = await asyncio.open_connection(*self._address, ssl=context, server_hostname=host)
        self.client_port = (writer.get_extra_info("sockname") or ("", 0))[1]
        self._streams = reader, writer
        return self._streams

    async def _raw(self, data: bytes) -> bytes:
        reader, writer = self._streams or await self._connect()
        writer.write(data)
        await writer.drain()
        (length,) = struct.unpack(">i", await reader.readexactly(4))
        return await reader.readexactly(length)

    async def _answered(self, frame: bytes) -> bytes:
        return await self._raw(struct.pack(">i", len(frame)) + frame)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _int16(data: bytes, at: int = 0) -> int:
    found: int = struct.unpack_from(">h", data, at)[0]
    return found


def _oauth(name: str | None, expires: int, authorization_id: str | None) -> bytes:
    """The first message with an unsecured token."""
    claims = {"iat": time.time() - 120, "exp": time.time() + expires, **({"sub": name} if name else {})}
    head, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({"alg": "none"}, claims)
    )
    who = f"a={authorization_id}" if authorization_id else ""
    return f"n,{who},\x01auth=Bearer {head}.{body}.\x01\x01".encode()


def _changed(final: bytes, how: str | None) -> bytes:
    bare, _, proof = final.decode().rpartition(",p=")
    match how:
        case "nonce":
            return f"{bare[:-1]}{'a' if bare[-1] != 'a' else 'b'},p={proof}".encode()
        case "proof":
            return f"{bare},p={'AAAA' if proof[:4] != 'AAAA' else 'BBBB'}{proof[4:]}".encode()
        case "short":
            return f"{bare},p={proof[:8]}".encode()
    return final
