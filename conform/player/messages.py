"""Kafka's requests and responses, written and read by the message definitions of the recorded version.

Messages are JSON as Kafka writes it: camelCase, numbers, bytes as base64, ids of topics as 22 characters.
"""

from __future__ import annotations

import base64
import gzip
import json
import struct
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]
Definition: TypeAlias = dict[str, Any]

TABLE: Final = Path(__file__).with_name("message-definitions-4.4.jsonl.gz")
API_VERSIONS: Final = "ApiVersions"
ZERO_ID: Final = "A" * 22
FORMER_NAMES: Final = {"TxnOffsetCommit": {"generationId": "generationIdOrMemberEpoch"}}
"""Fields that Kafka has renamed since scripts and recordings were written, by API. Both names are taken."""

_NUMBERS: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
}


class NoSuchField(ValueError):
    """A field that this version of the message does not have."""


class UnreadableResponse(ValueError):
    """A frame that does not hold the response it should; the text says where."""


@cache
def _definitions() -> dict[str, Definition]:
    lines = gzip.decompress(TABLE.read_bytes()).splitlines()
    return {found["name"]: found for found in map(json.loads, lines)}


def newest(api: str) -> int:
    """The newest version of a request."""
    return int(_definitions()[f"{api}Request"]["validVersions"].rpartition("-")[2])


def api_key(api: str) -> int:
    return int(_definitions()[f"{api}Request"]["apiKey"])


@cache
def _names() -> dict[int, str]:
    requests = (found for name, found in _definitions().items() if name.endswith("Request"))
    return {found["apiKey"]: found["name"].removesuffix("Request") for found in requests}


def api_name(key: int) -> str:
    return _names()[key]


def has_field(api: str, version: int, name: str) -> bool:
    """Whether a request of this version has a field at its top level."""
    fields, name = _definitions()[f"{api}Request"]["fields"], FORMER_NAMES.get(api, {}).get(name, name)
    return any(_json_name(field) == name and _has(field["versions"], version) for field in fields)


def request_frame(
    api: str, version: int, correlation_id: int, client_id: str, body: Json, claimed: int | None = None
) -> bytes:
    """A request with its header, without the length in front. Fields that are missing have their defaults.

    The header may claim another version than the one that is written. Raises NoSuchField.
    """
    definition = _definitions()[f"{api}Request"]
    writer = _Writer(version, _has(definition["flexibleVersions"], version))
    name = client_id.encode()
    writer.data += struct.pack(">hh", definition["apiKey"], version if claimed is None else claimed)
    writer.data += struct.pack(">ih", correlation_id, len(name)) + name
    if writer.is_flexible:
        writer.data += b"\0"
    former = FORMER_NAMES.get(api, {})
    writer.fields(definition["fields"], {former.get(field, field): value for field, value in body.items()}, api)
    return bytes(writer.data)


def with_defaults(api: str, version: int, body: Json) -> Json:
    """Every field of a request that is sent; tagged ones only where they are given."""
    return _filled(_definitions()[f"{api}Request"]["fields"], version, body)


def _filled(fields: list[Definition], version: int, body: Json) -> Json:
    found = {}
    for field in fields:
        name, inner = _json_name(field), field.get("fields")
        if not _has(field["versions"], version) or ("tag" in field and name not in body):
            continue
        value = body.get(name, _default(field))
        if inner and isinstance(value, list):
            value = [_filled(inner, version, each) for each in value]
        elif inner and value is not None:
            value = _filled(inner, version, value)
        found[name] = value
    return found


def without_newer_fields(api: str, version: int, body: Json) -> Json:
    """A request without the fields that this version does not have."""
    return _kept(_definitions()[f"{api}Request"]["fields"], version, body)


def _kept(fields: list[Definition], version: int, body: Json) -> Json:
    found = {}
    for field in fields:
        name, inner = _json_name(field), field.get("fields")
        if name not in body or not _has(field["versions"], version):
            continue
        value = body[name]
        if inner and isinstance(value, list):
            value = [_kept(inner, version, each) for each in value]
        elif inner and value is not None:
            value = _kept(inner, version, value)
        found[name] = value
    return found


def response(api: str, version: int, frame: bytes) -> Json:
    """The body of a response, from its frame. Raises UnreadableResponse."""
    definition = _definitions()[f"{api}Response"]
    reader = _Reader(frame, version, _has(definition["flexibleVersions"], version))
    reader.at = 4
    try:
        if reader.is_flexible and api != API_VERSIONS:
            reader.skip_tags()
        found = reader.fields(definition["fields"])
    except (IndexError, struct.error, UnicodeDecodeError) as problem:
        raise UnreadableResponse(f"{api} v{version}: {problem} near byte {reader.at} of {len(frame)}") from None
    if reader.at != len(frame):
        raise UnreadableResponse(f"{api} v{version}: {len(frame) - reader.at} bytes are left")
    return found


def _has(versions: str, version: int) -> bool:
    if versions == "none":
        return False
    first, is_range, last = versions.partition("-")
    if first.endswith("+"):
        return version >= int(first[:-1])
    return int(first) <= version <= int(last) if is_range else version == int(first)


def _json_name(field: Definition) -> str:
    name: str = field["name"]
    return name[0].lower() + name[1:]


def _is_nullable(field: Definition, version: int) -> bool:
    return _has(field.get("nullableVersions", "none"), version)


def _default(field: Definition) -> Any:
    given, kind = field.get("default"), field["type"]
    if given == "null":
        return None
    if kind.startswith("[]"):
        return []
    if kind == "bool":
        return given == "true"
    if kind in _NUMBERS:
        return 0 if given in (None, "") else float(given) if kind == "float64" else int(str(given), 0)
    if kind == "uuid":
        return ZERO_ID
    if kind in ("string", "bytes", "records"):
        return "" if given is None else given
    return {}


class _Writer:
    def __init__(self, version: int, is_flexible: bool) -> None:
        self.version = version
        self.is_flexible = is_flexible
        self.data = bytearray()

    def fields(self, fields: list[Definition], body: Json, path: str) -> None:
        known = [field for field in fields if _has(field["versions"], self.version)]
        surplus = body.keys() - {_json_name(field) for field in known}
        if surplus:
            raise NoSuchField(f"{path} v{self.version} has no field {', '.join(sorted(surplus))}")
        tagged: list[tuple[int, bytes]] = []
        for field in known:
            name = _json_name(field)
            value = body.get(name, _default(field))
            if "tag" not in field:
                self.value(field, field["type"], value, f"{path}.{name}")
            elif value != _default(field):
                inner = _Writer(self.version, True)
                inner.value(field, field["type"], value, f"{path}.{name}")
                tagged.append((int(field["tag"]), bytes(inner.data)))
        if self.is_flexible:
            self.unsigned(len(tagged))
            for tag, data in sorted(tagged):
                self.unsigned(tag)
                self.unsigned(len(data))
                self.data += data

    def value(self, field: Definition, kind: str, value: Any, path: str) -> None:
        if kind in _NUMBERS:
            self.data += struct.pack(f">{_NUMBERS[kind]}", value)
        elif kind == "uuid":
            self.data += base64.urlsafe_b64decode(value + "==")
        elif kind == "string":
            self._sized(None if value is None else value.encode(), "h")
        elif kind in ("bytes", "records"):
            self._sized(value if value is None or isinstance(value, bytes) else base64.b64decode(value), "i")
        elif kind.startswith("[]"):
            self._size(-1 if value is None else len(value), "i")
            for number, item in enumerate(value or ()):
                self.value({**field, "nullableVersions": "none"}, kind[2:], item, f"{path}.{number}")
        else:
            if _is_nullable(field, self.version):
                self.data += b"\xff" if value is None else b"\x01"
            if value is not None:
                self.fields(field["fields"], value, path)

    def unsigned(self, value: int) -> None:
        while value > 0x7F:
            self.data.append(value & 0x7F | 0x80)
            value >>= 7
        self.data.append(value)

    def _size(self, size: int, fixed: str) -> None:
        if self.is_flexible:
            self.unsigned(size + 1)
        else:
            self.data += struct.pack(f">{fixed}", size)

    def _sized(self, data: bytes | None, fixed: str) -> None:
        self._size(-1 if data is None else len(data), fixed)
        self.data += data or b""


class _Reader:
    def __init__(self, data: bytes, version: int, is_flexible: bool) -> None:
        self._data = data
        self.at = 0
        self._version = version
        self.is_flexible = is_flexible

    def fields(self, fields: list[Definition]) -> Json:
        known = [field for field in fields if _has(field["versions"], self._version)]
        found = {
            _json_name(field): _default(field) if "tag" in field else self.value(field, field["type"])
            for field in known
        }
        if self.is_flexible:
            tagged = {int(field["tag"]): field for field in known if "tag" in field}
            for _ in range(self.unsigned()):
                tag, size = self.unsigned(), self.unsigned()
                if tag in tagged:
                    found[_json_name(tagged[tag])] = self.value(tagged[tag], tagged[tag]["type"])
                else:
                    self.at += size
        return found

    def skip_tags(self) -> None:
        for _ in range(self.unsigned()):
            self.unsigned()
            self.at += self.unsigned()

    def value(self, field: Definition, kind: str) -> Any:
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind == "uuid":
            return base64.urlsafe_b64encode(self._take(16)).decode()[:22]
        if kind == "string":
            size = self._size("h")
            return None if size < 0 else self._take(size).decode()
        if kind in ("bytes", "records"):
            size = self._size("i")
            return None if size < 0 else base64.b64encode(self._take(size)).decode()
        if kind.startswith("[]"):
            size = self._size("i")
            inner = {**field, "nullableVersions": "none"}
            return None if size < 0 else [self.value(inner, kind[2:]) for _ in range(size)]
        if _is_nullable(field, self._version) and self._number("b") < 0:
            return None
        return self.fields(field["fields"])

    def unsigned(self) -> int:
        found = shift = 0
        while True:
            byte = self._data[self.at]
            self.at += 1
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
            shift += 7

    def _number(self, code: str) -> Any:
        size = struct.calcsize(f">{code}")
        return struct.unpack(f">{code}", self._take(size))[0]

    def _size(self, fixed: str) -> int:
        return self.unsigned() - 1 if self.is_flexible else int(self._number(fixed))

    def _take(self, size: int) -> bytes:
        found = self._data[self.at : self.at + size]
        self.at += size
        return found
