"""`rejoin consume --transform-to`: its options, and the settings of the producers that it needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rejoin.client.commands.consume import ConsumeOptions
from rejoin.client.commands.setting_options import WrongOption, with_settings
from rejoin.client.config import ConsumerConfig
from rejoin.client.producer_config import ProducerConfig, checked_producer_config
from rejoin.client.security_config import ClientSecurityConfig
from rejoin.client.workload.transforming import TRANSACTION_TIMEOUT_MS, Transform
from rejoin.protocol.units import duration_ms
from rejoin.protocol.validation import nearest

_MADE_HERE: Final = {
    "transactional.id": "is made of --group, --client-id and the consumer's number; leave it out",
    "enable.auto.commit": "is chosen by --commit; leave it out",
}


def check_transform(given: ConsumeOptions, topics: Sequence[str]) -> None:
    """Raises WrongOption."""
    to = given.transform_to
    if given.commit_interval is not None and not given.exactly_once:
        raise WrongOption(
            "--commit-interval: needs --exactly-once; without transactions, -c auto.commit.interval.ms=MS"
        )
    if to is None:
        if given.exactly_once:
            raise WrongOption(
                "--exactly-once: needs --transform-to TOPIC; offsets are committed with the records written there"
            )
        return
    if "//" in given.bootstrap:
        raise WrongOption(
            f"--transform-to {to}: records cannot be read over HTTP; give the listener of Kafka's protocol, as in "
            "--bootstrap-server 127.0.0.1:9092"
        )
    if to in topics or (given.pattern is not None and re.fullmatch(given.pattern, to)):
        raise WrongOption(f"--transform-to {to}: this topic is read, too, so the run would never end; write to another")
    if given.exactly_once and given.commit is not None:
        raise WrongOption(
            f"--commit {given.commit}: --exactly-once commits offsets in the transaction; leave --commit out"
        )


def split_settings(given: ConsumeOptions) -> tuple[list[str], list[str]]:
    """``-c`` for the consumers, and ``-c`` for their producers. Settings that both have are for both."""
    pairs = given.setting or []
    if given.transform_to is None:
        return pairs, []
    consumer, producer = _names(ConsumerConfig), _names(ProducerConfig)
    for pair in pairs:
        name = _name(pair)
        if name in _MADE_HERE:
            raise WrongOption(f"-c {name}: {_MADE_HERE[name]}")
        if name not in consumer | producer:
            raise WrongOption(f"-c {pair}: there is no setting {name}{nearest(name, sorted(consumer | producer))}")
    of_consumer = [pair for pair in pairs if _name(pair) in consumer]
    return of_consumer, [pair for pair in pairs if _name(pair) in producer]


def transform_from(given: ConsumeOptions, config: ConsumerConfig, pairs: Sequence[str]) -> Transform | None:
    """The consumers' transform; none if they write nothing. Raises WrongOption, and ValueError with one sentence."""
    if given.transform_to is None:
        return None
    settings = {name: getattr(config, name) for name in ClientSecurityConfig.model_fields}
    settings["bootstrap_servers"] = config.bootstrap_servers
    if given.exactly_once:
        settings["transaction_timeout_ms"] = TRANSACTION_TIMEOUT_MS
    settings = with_settings(ProducerConfig, settings, pairs)
    prefix = given.group if given.client_id is None else f"{given.group}-{given.client_id}"
    numbers = range(given.first, given.first + given.consumers)
    ids = tuple(f"{prefix}-{number}" for number in numbers) if given.exactly_once else ()
    checked = checked_producer_config({**settings, "transactional_id": ids[0]} if ids else settings)
    interval = _commit_interval(given.commit_interval, checked.transaction_timeout_ms)
    return Transform(given.transform_to, given.exactly_once, ids, settings, interval)


def _commit_interval(given: str | None, timeout_ms: int) -> float:
    """How old transactions get, in ms. Raises WrongOption."""
    if given is None:
        return 0.0
    try:
        interval = duration_ms(given)
    except ValueError as problem:
        raise WrongOption(f"--commit-interval {given}: {problem}") from None
    if interval >= timeout_ms:
        # Kafka Streams refuses this as well (StreamsConfig).
        raise WrongOption(
            f"--commit-interval {given}: each transaction would be aborted first, as transaction.timeout.ms is "
            f"{timeout_ms}; give more with -c transaction.timeout.ms=MS"
        )
    return interval


def _name(pair: str) -> str:
    return pair.partition("=")[0].strip()


def _names(model: type[ClientSecurityConfig]) -> set[str]:
    return {info.alias or name for name, info in model.model_fields.items()}
