"""Requests about metrics of clients and the subscriptions to them, one after the other: every version, every error."""

from __future__ import annotations

import base64
import struct
from collections.abc import Generator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from conformance.security.acl_probes import Probe
from conformance.security.acl_sequences import ADMIN
from rejoin.protocol.types import ZERO_UUID
from rejoin.protocol.wire.compression import CompressionType, compress

NO_RIGHTS: Final = "alice"
CLIENT_METRICS: Final = 16
TELEMETRY_MAX_BYTES: Final = 20_000
SOFTWARE: Final = ("rejoin-test", "1.2.3")
CLIENTS: Final = tuple(f"{letter * 21}Q" for letter in "BCDEFGHIJKLMN")
"""Client instance ids."""
_INTERVAL_MS: Final = 100
_AFTER_INTERVAL_MS: Final = 200
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_KINDS: Final[tuple[tuple[int, ...], ...]] = (
    *((), (16,), (2,), (4,), (8,), (32,), (4, 8), (16, 16)),
    *((1,), (0,), (-1,), (16, 3), (33,)),
)
_NAMES: Final = ("interval.ms", "match", "metrics")

Answer: TypeAlias = Mapping[str, Any]


class TimedProbe(NamedTuple):
    """A request of a principal, sent so many milliseconds after the answer before it."""

    who: str
    probe: Probe
    after_ms: int = 0


Script: TypeAlias = Generator[TimedProbe, Answer, Any]


def telemetry_script() -> Script:
    """The whole script. It is given the answer to each request."""
    for who in (ADMIN, NO_RIGHTS):
        name, version = SOFTWARE
        versions = {"clientSoftwareName": name, "clientSoftwareVersion": version}
        yield TimedProbe(who, Probe("ApiVersions", 4, versions))
    yield from _listed()
    yield from _wrong_settings()
    yield from _settings()
    yield from _listed()
    yield from _deleted("every", "none")
    yield from _matched()
    yield from _ids()
    yield from _pushes()
    yield from _changed()
    yield from _orders()


# --- settings


def incremental(name: str, *operations: tuple[int, str, str | None], version: int = 1) -> Probe:
    """An IncrementalAlterConfigs of a subscription: operation, setting, value."""
    configs = [{"name": key, "configOperation": number, "value": value} for number, key, value in operations]
    resource = {"resourceType": CLIENT_METRICS, "resourceName": name, "configs": configs}
    return Probe("IncrementalAlterConfigs", version, {"resources": [resource], "validateOnly": False})


def replaced(name: str, settings: Mapping[str, str | None], *, version: int = 2, validates: bool = False) -> Probe:
    """An AlterConfigs of a subscription."""
    configs = [{"name": key, "value": value} for key, value in settings.items()]
    resource = {"resourceType": CLIENT_METRICS, "resourceName": name, "configs": configs}
    return Probe("AlterConfigs", version, {"resources": [resource], "validateOnly": validates})


def described(name: str, *keys: str, version: int = 4) -> Probe:
    """A DescribeConfigs of a subscription."""
    resource = {"resourceType": CLIENT_METRICS, "resourceName": name, "configurationKeys": list(keys) or None}
    return Probe("DescribeConfigs", version, {"resources": [resource], "includeSynonyms": True})


def listed(*kinds: int, version: int = 1) -> Probe:
    """A ListConfigResources."""
    return Probe("ListConfigResources", version, {"resourceTypes": list(kinds)} if version else {})


def _listed() -> Script:
    for who in (ADMIN, NO_RIGHTS):
        yield TimedProbe(who, listed(version=0))
        for kinds in _KINDS:
            yield TimedProbe(who, listed(*kinds))


def _wrong_settings() -> Script:
    wrong: tuple[tuple[str, str], ...] = (
        *(("interval.ms", value) for value in ("99", "3600001", "-1", "a", "", "1e3", "2147483648", " 200 ")),
        *(("metrics", value) for value in ("", "a,a", "a,,b", " a , b ", ",", "*", "a b")),
        *(("match", value) for value in ("", "client_id", "client_id=", "=a", "client_id=a=b", "client_id=a=", "a=b")),
        *(("match", value) for value in ("client_id=[", "client_id=(a", "client_id=a,client_id=b", "CLIENT_ID=a")),
        *(("match", value) for value in ("client_id = a ", " client_id=a", "client_id=a,", "client_id=a,client_id=a")),
        *(
            ("match", value)
            for value in ("client_software_name=a,client_source_port=x", "client_id=a+?b", "client_id=*")
        ),
        ("unknown", "1"),
        ("", "1"),
        ("push.interval.ms", "1000"),
    )
    for key, value in wrong:
        yield TimedProbe(ADMIN, incremental("wrong", (_SET, key, value)))
        yield TimedProbe(ADMIN, replaced("wrong", {key: value}, validates=True))
        yield from _deleted("wrong")
    yield TimedProbe(ADMIN, incremental("", (_SET, "interval.ms", "1000")))
    yield TimedProbe(ADMIN, replaced("", {"interval.ms": "1000"}))
    yield TimedProbe(ADMIN, described(""))
    yield TimedProbe(ADMIN, incremental("wrong", (_SET, "interval.ms", None)))
    yield TimedProbe(ADMIN, incremental("wrong", (_SET, "interval.ms", "500"), (_SET, "interval.ms", "500")))
    yield TimedProbe(ADMIN, incremental("wrong", (_SET, "interval.ms", "500"), (_SET, "unknown", "500")))
    yield TimedProbe(ADMIN, incremental("wrong", (_APPEND, "interval.ms", "500")))
    yield TimedProbe(ADMIN, incremental("wrong", (_APPEND, "unknown", "500")))
    yield TimedProbe(ADMIN, incremental("wrong", (4, "interval.ms", "500")))
    yield TimedProbe(ADMIN, incremental("wrong", (_DELETE, "interval.ms", None)))
    yield TimedProbe(ADMIN, incremental("wrong", (_DELETE, "unknown", None)))
    yield TimedProbe(ADMIN, replaced("wrong", {"interval.ms": None}))
    yield TimedProbe(ADMIN, described("wrong"))
    for version in (0, 1):
        yield TimedProbe(NO_RIGHTS, incremental("some", (_SET, "interval.ms", "500"), version=version))
    for version in (0, 1, 2):
        yield TimedProbe(NO_RIGHTS, replaced("some", {"interval.ms": "500"}, version=version))
    for version in (1, 2, 3, 4):
        yield TimedProbe(NO_RIGHTS, described("some", version=version))


def _settings() -> Script:
    for version in (0, 1):
        yield TimedProbe(ADMIN, incremental("every", (_SET, "interval.ms", "500"), version=version))
        yield TimedProbe(ADMIN, described("every"))
    for operation, key, value in (
        (_APPEND, "metrics", "a.,b."),
        (_APPEND, "metrics", "a.,c."),
        (_SUBTRACT, "metrics", "a."),
        (_SUBTRACT, "metrics", "z."),
        (_APPEND, "match", "client_id=x"),
        (_APPEND, "match", "client_id=y"),
        (_SUBTRACT, "match", "client_id=x"),
        (_SET, "metrics", "d.,e."),
        (_DELETE, "interval.ms", None),
    ):
        yield TimedProbe(ADMIN, incremental("every", (operation, key, value)))
        yield TimedProbe(ADMIN, described("every"))
    for version in (0, 1, 2):
        yield TimedProbe(ADMIN, replaced("every", {"metrics": f"v{version}"}, version=version))
        yield TimedProbe(ADMIN, described("every"))
        yield TimedProbe(ADMIN, replaced("every", {"interval.ms": "700"}, version=version, validates=True))
        yield TimedProbe(ADMIN, replaced("none", {}, version=version))
        yield TimedProbe(ADMIN, described("none"))
    for version in (1, 2, 3, 4):
        yield TimedProbe(ADMIN, described("every", version=version))
    yield TimedProbe(ADMIN, described("every", "metrics", "unknown"))
    yield TimedProbe(ADMIN, described("none"))
    yield TimedProbe(ADMIN, described("x" * 300))


def _deleted(*names: str) -> Script:
    for name in names:
        yield TimedProbe(ADMIN, incremental(name, *((_DELETE, key, None) for key in _NAMES)))


# --- clients


def _subscription(client: str, after_ms: int = 0, who: str = ADMIN) -> Script:
    answer = yield TimedProbe(who, Probe("GetTelemetrySubscriptions", 0, {"clientInstanceId": client}), after_ms)
    return answer["subscriptionId"]


def _push(
    client: str,
    subscription: int,
    payload: bytes | None = None,
    *,
    codec: int = CompressionType.NONE,
    terminating: bool = False,
    after_ms: int = 0,
) -> Script:
    body = {
        "clientInstanceId": client,
        "subscriptionId": subscription,
        "terminating": terminating,
        "compressionType": codec,
        "metrics": base64.b64encode(metric("a") if payload is None else payload).decode(),
    }
    yield TimedProbe(ADMIN, Probe("PushTelemetry", 0, body), after_ms)


def field(number: int, content: bytes) -> bytes:
    """A field of protobuf with bytes in it."""
    length, size = len(content), bytearray()
    while length > 0x7F:
        size.append(0x80 | (length & 0x7F))
        length >>= 7
    return bytes([number << 3 | 2]) + bytes(size) + bytes([length]) + content


def metric(name: str, value: float = 1.0) -> bytes:
    """MetricsData of OpenTelemetry with one gauge."""
    point = b"\x21" + struct.pack("<d", value)
    gauge = field(1, name.encode()) + field(5, field(1, point))
    return field(1, field(2, field(2, gauge)))


def _matched() -> Script:
    """One client for each selector: whether it matches is seen by the interval."""
    selectors = (
        *("client_id=test", "client_id=te", "client_id=te.*", "client_id=.*s.", "client_id=TEST", "client_id=(?i)TEST"),
        *("client_software_name=rejoin-test", "client_software_name=rejoin", "client_software_version=1\\.2\\..*"),
        *("client_software_version=1.2", "client_source_address=127\\.0\\.0\\.1", "client_source_address=127.*"),
        *(
            "client_source_address=10.*",
            "client_source_port=[0-9]+",
            "client_source_port=1",
            f"client_instance_id={CLIENTS[0]}",
        ),
        *("client_instance_id=B+Q", "client_instance_id=B+", "client_id=test,client_software_name=rejoin-test"),
        *("client_id=test,client_software_name=other", "client_id=a|test", ""),
    )
    for number, selector in enumerate(selectors):
        changes = {"match": selector, "interval.ms": str(1_000 + number), "metrics": "m."}
        yield TimedProbe(ADMIN, incremental("one", *((_SET, key, value) for key, value in changes.items())))
        yield from _subscription(CLIENTS[0], 300)
    yield from _deleted("one")


def _ids() -> Script:
    """Instance ids: one that the broker draws, and those that are reserved."""
    yield from _subscription(ZERO_UUID, 300)
    yield from _subscription(f"{'A' * 21}Q")
    for client in (ZERO_UUID, f"{'A' * 21}Q"):
        yield from _push(client, 0)
    yield from _subscription(CLIENTS[1], who=NO_RIGHTS)


def _pushes() -> Script:
    yield from _too_soon()
    yield TimedProbe(ADMIN, incremental("all", (_SET, "interval.ms", str(_INTERVAL_MS)), (_SET, "metrics", "*")))
    client = CLIENTS[2]
    known = yield from _subscription(client, _AFTER_INTERVAL_MS)
    for codec in CompressionType:
        yield from _push(client, known, bytes(compress(codec, metric("b"))), codec=codec, after_ms=_AFTER_INTERVAL_MS)
    yield from _bad_payloads(client, known)
    yield from _deleted("all")


def _too_soon() -> Script:
    """An interval so long that a second request is always too soon."""
    yield TimedProbe(ADMIN, incremental("slow", (_SET, "interval.ms", "600000"), (_SET, "metrics", "*")))
    one, two, three, four, five, six = CLIENTS[3:9]
    known = yield from _subscription(one, 300)
    yield from _subscription(one)
    for codec in (0, 0, 9):
        yield from _push(one, known, codec=codec)
    yield from _subscription(one)
    yield from _push(one, known, terminating=True)  # the last one may come too soon
    for terminating in (True, False, False):
        yield from _push(one, known, terminating=terminating)
    known = yield from _subscription(two)
    yield from _push(two, known + 1)
    yield from _subscription(two)  # after an unknown subscription it may ask at once
    yield from _push(two, known)
    known = yield from _subscription(three)
    yield from _push(three, known, codec=5)
    yield from _subscription(three)  # after an unknown codec, too
    yield from _push(three, known, codec=-1)
    known = yield from _subscription(four)
    yield from _push(four, known, b"x" * (TELEMETRY_MAX_BYTES + 1))
    yield from _subscription(four)
    known = yield from _subscription(five)
    yield from _push(five, known, b"\xff\xff", terminating=True)
    yield from _subscription(five)
    yield from _push(six, 7)  # of a client that has not asked
    yield from _push(six, 7, codec=9)
    yield from _subscription(six)
    yield from _deleted("slow")


def _bad_payloads(client: str, known: int) -> Script:
    small, large = b"\0" * TELEMETRY_MAX_BYTES, b"\0" * (TELEMETRY_MAX_BYTES + 1)
    unpacked = field(9, b"x" * 10 * TELEMETRY_MAX_BYTES)
    payloads = (
        (b"", CompressionType.NONE),
        (b"\xff\xff", CompressionType.NONE),
        (b"no metrics", CompressionType.NONE),
        (small, CompressionType.NONE),
        (large, CompressionType.NONE),
        *((b"damaged", codec) for codec in CompressionType if codec),
        *((b"", codec) for codec in CompressionType if codec),
        *((bytes(compress(codec, unpacked)), codec) for codec in CompressionType if codec),
        (bytes(compress(CompressionType.GZIP, metric("x" * 50_000))), CompressionType.GZIP),
    )
    for payload, codec in payloads:
        yield from _push(client, known, payload, codec=codec, after_ms=_AFTER_INTERVAL_MS)


def _changed() -> Script:
    """A subscription that changes while a client knows the one before."""
    client = CLIENTS[10]
    yield TimedProbe(ADMIN, incremental("old", (_SET, "interval.ms", "60000"), (_SET, "metrics", "a.")))
    known = yield from _subscription(client, 300)
    yield from _push(client, known)
    yield TimedProbe(ADMIN, incremental("old", (_SET, "metrics", "b.")))
    yield from _push(client, known, after_ms=300)
    changed = yield from _subscription(client)
    yield from _push(client, changed)
    yield TimedProbe(ADMIN, incremental("new", (_SET, "metrics", "*"), (_SET, "interval.ms", "50000")))
    yield from _subscription(client, 300)
    yield TimedProbe(ADMIN, incremental("other", (_SET, "metrics", "z."), (_SET, "match", "client_id=no")))
    yield from _subscription(client, 300)  # the interval begins again
    yield from _deleted("old", "new", "other")
    yield from _subscription(client, 300)


def _orders() -> Script:
    """Many prefixes of several subscriptions, in the order of Java's sets; the id depends on it."""
    for number in range(4):
        prefixes = ",".join(f"org.apache.kafka.{part}.{number}" for part in ("consumer", "producer", "admin", "client"))
        yield TimedProbe(ADMIN, incremental(f"set-{number}", (_SET, "metrics", f"{prefixes},shared")))
        yield from _subscription(CLIENTS[11], 300)
    yield TimedProbe(ADMIN, incremental("empty", (_SET, "metrics", "")))
    yield from _subscription(CLIENTS[11], 300)
    yield TimedProbe(ADMIN, incremental("set-0", (_SET, "metrics", ",".join(f"m{number}." for number in range(40)))))
    yield from _subscription(CLIENTS[11], 300)
    yield from _deleted(*(f"set-{number}" for number in range(4)), "empty")


# --- what is compared


_TEXTS: Final = frozenset({"errorMessage", "documentation"})


def comparable(answer: Any) -> Any:
    """An answer without texts; lists are compared without their order but for metrics and codecs."""
    if isinstance(answer, dict):
        if "apiKeys" in answer:
            return sorted(key["apiKey"] for key in answer["apiKeys"] if key["apiKey"] in {71, 72, 74})
        return {key: comparable(value) for key, value in answer.items() if key not in _TEXTS}
    if isinstance(answer, list) and answer and isinstance(answer[0], dict):
        return sorted(map(comparable, answer), key=str)
    return answer
