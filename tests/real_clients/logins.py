"""How each library logs in, and the shortest life behind it: one record is produced and consumed."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiokafka
import confluent_kafka
import jwt
import kafka
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from kafka.net.sasl.oauth import AbstractTokenProvider

SECONDS: Final = 20
TOPIC: Final = "orders"


@dataclass(frozen=True)
class Login:
    """How a client comes in. Without a mechanism its certificate decides, if it has one."""

    protocol: str
    ca: Path
    mechanism: str = ""
    password: str = "alice-secret"
    keystore: Path | None = None
    patience_seconds: float = 20.0

    @property
    def context(self) -> ssl.SSLContext | None:
        if not self.protocol.endswith("SSL"):
            return None
        context = ssl.create_default_context(cafile=self.ca)
        if self.keystore is not None:
            context.load_cert_chain(self.keystore)
        return context

    def token(self) -> str:
        return jwt.encode({"sub": "alice", "iat": time.time() - 60, "exp": time.time() + 600}, "", "none")


class _Token(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, login: Login) -> None:
        self._login = login

    def token(self) -> str:
        return self._login.token()


class _AioToken(AioTokenProvider):  # type: ignore[misc]
    def __init__(self, login: Login) -> None:
        self._login = login

    async def token(self) -> str:
        return self._login.token()


def with_confluent(server: str, login: Login, value: bytes, topic: str = TOPIC) -> bytes:
    errors: list[Any] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": server,
        "security.protocol": login.protocol,
        "ssl.ca.location": str(login.ca),
        "error_cb": errors.append,
        "log_level": 0,
    }
    if login.keystore is not None:
        settings |= {"ssl.certificate.location": str(login.keystore), "ssl.key.location": str(login.keystore)}
    if login.mechanism == "OAUTHBEARER":
        settings |= {"sasl.mechanism": login.mechanism, "oauth_cb": lambda _: (login.token(), time.time() + 600)}
    elif login.mechanism:
        user = {"sasl.username": "alice", "sasl.password": login.password}
        settings |= {"sasl.mechanism": login.mechanism, **user}
    producer = confluent_kafka.Producer(settings)
    producer.produce(topic, value)
    end = time.monotonic() + SECONDS
    while len(producer) and not errors and time.monotonic() < end:
        producer.poll(0.05)
    if len(producer):
        producer.purge()
        producer.flush(1)
        raise RuntimeError(f"refused: {[each.str() for each in errors]}")
    consumer = confluent_kafka.Consumer(settings | {"group.id": "logins", "auto.offset.reset": "earliest"})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    message = consumer.poll(SECONDS)
    consumer.close()
    assert message is not None, "no record came"
    found = message.value()
    assert isinstance(found, bytes), message.error()
    return found


def with_aiokafka(server: str, login: Login, value: bytes, topic: str = TOPIC) -> bytes:
    settings: dict[str, Any] = {
        "bootstrap_servers": server,
        "security_protocol": login.protocol,
        "ssl_context": login.context,
    }
    if login.mechanism == "OAUTHBEARER":
        settings |= {"sasl_mechanism": login.mechanism, "sasl_oauth_token_provider": _AioToken(login)}
    elif login.mechanism:
        user = {"sasl_plain_username": "alice", "sasl_plain_password": login.password}
        settings |= {"sasl_mechanism": login.mechanism, **user}

    async def life() -> bytes:
        producer = aiokafka.AIOKafkaProducer(**settings)
        try:
            async with asyncio.timeout(SECONDS):
                await producer.start()
                await producer.send_and_wait(topic, value)
        finally:
            await producer.stop()
        async with asyncio.timeout(SECONDS):
            consumer = aiokafka.AIOKafkaConsumer(**settings, auto_offset_reset="earliest")
            consumer.assign([aiokafka.TopicPartition(topic, 0)])
            async with consumer:
                record = await consumer.getone()
        return bytes(record.value)

    return asyncio.run(life())


def with_kafka_python(server: str, login: Login, value: bytes, topic: str = TOPIC) -> bytes:
    settings: dict[str, Any] = {
        "bootstrap_servers": server,
        "security_protocol": login.protocol,
        "ssl_context": login.context,
    }
    if login.mechanism == "OAUTHBEARER":
        settings |= {"sasl_mechanism": login.mechanism, "sasl_oauth_token_provider": _Token(login)}
    elif login.mechanism:
        user = {"sasl_plain_username": "alice", "sasl_plain_password": login.password}
        settings |= {"sasl_mechanism": login.mechanism, **user}
    producer = kafka.KafkaProducer(**settings, bootstrap_timeout_ms=int(login.patience_seconds * 1_000))
    try:
        producer.send(topic, value).get(SECONDS)
    finally:
        producer.close(timeout=1)
    consumer = kafka.KafkaConsumer(**settings, auto_offset_reset="earliest", consumer_timeout_ms=SECONDS * 1_000)
    consumer.assign([kafka.TopicPartition(topic, 0)])
    try:
        return bytes(next(consumer).value)
    finally:
        consumer.close()


LIBRARIES: Final[dict[str, Callable[..., bytes]]] = {
    "aiokafka": with_aiokafka,
    "confluent-kafka": with_confluent,
    "kafka-python": with_kafka_python,
}


def main(name: str, file: str) -> None:
    """Log in by each way that a file lists; a line of JSON for each."""
    for given in json.loads(Path(file).read_text()):
        keystore = Path(given["keystore"]) if given["keystore"] else None
        login = Login(given["protocol"], Path(given["ca"]), given["mechanism"], given["password"], keystore, 5.0)
        problem = ""
        try:
            LIBRARIES[name](given["server"], login, b"value", topic="logins")
        except Exception as raised:  # whatever it is, this login has failed
            problem = f"{type(raised).__name__}: {raised}"
        print(json.dumps({"step": given["name"], "problem": problem}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
