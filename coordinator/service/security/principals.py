"""From the certificate of a client to its principal.

Kafka: DefaultKafkaPrincipalBuilder, SslPrincipalMapper; Java's X500Principal.getName writes subjects as RFC 2253.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from rejoin.coordinator.core.inputs import ANONYMOUS

_KEYWORDS: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_ENCODED: Final = {
    "emailAddress": ("1.2.840.113549.1.9.1", 0x16),
    "serialNumber": ("2.5.4.5", 0x13),
    "title": ("2.5.4.12", 0x0C),
    "givenName": ("2.5.4.42", 0x0C),
    "surname": ("2.5.4.4", 0x0C),
}
"""Attributes without a keyword in RFC 2253, which Java writes as the bytes of their value: identifier and ASN.1 tag."""
_SPECIAL: Final = re.compile(r'([,+"\\<>;])')
_LONG_ASN1: Final = 0x80
_RULE: Final = re.compile(r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|.*?")
_SPLIT: Final = re.compile(rf"\s*({_RULE.pattern})\s*(?:,\s*|$)")
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d+)")

_Rule: TypeAlias = Callable[[str], str | None]


class SslPrincipals:
    """Maps the subjects of certificates to principals, by Kafka's rules. Raises ``ValueError`` for a mistaken rule."""

    def __init__(self, rules: str) -> None:
        self._text = rules
        self._rules = _rules_from(rules)

    def principal(self, certificate: Mapping[str, Any] | None) -> str | None:
        """The principal of a client with this certificate, as ``ssl`` gives it; none where no rule fits it."""
        if not certificate:
            return ANONYMOUS
        subject = subject_name(certificate["subject"])
        name = next((found for rule in self._rules if (found := rule(subject)) is not None), None)
        return None if name is None else f"User:{name}"


def subject_name(subject: tuple[tuple[tuple[str, str], ...], ...]) -> str:
    """A subject as RFC 2253 writes it: the last part first."""
    return ",".join("+".join(_attribute(*each) for each in names) for names in reversed(subject))


def _attribute(kind: str, value: str) -> str:
    if kind in _ENCODED:
        identifier, tag = _ENCODED[kind]
        data = value.encode()
        if len(data) < _LONG_ASN1:
            return f"{identifier}=#{bytes([tag, len(data)]).hex()}{data.hex()}"
    text = _SPECIAL.sub(r"\\\1", value)
    if text.startswith(("#", " ")):
        text = f"\\{text}"
    if text.endswith(" ") and not text.endswith("\\ "):
        text = f"{text[:-1]}\\ "
    return f"{_KEYWORDS.get(kind, kind)}={text}"


def _rules_from(text: str) -> list[_Rule]:
    rules: list[_Rule] = []
    for match in _SPLIT.finditer(text.strip()):
        rule = match[1]
        parsed = _RULE.fullmatch(rule)
        if parsed is None or (rule and not parsed[1] and parsed[2] is None):
            expected = "expected DEFAULT or RULE:PATTERN/REPLACEMENT/[LU]"
            raise ValueError(f"ssl.principal.mapping.rules: {rule!r}: {expected}")
        if parsed[1]:
            rules.append(lambda subject: subject)
        elif parsed[2] is not None:
            rules.append(_replacing(parsed[2], parsed[3], parsed[4]))
    return rules


def _replacing(pattern: str, replacement: str, case: str) -> _Rule:
    try:
        compiled = re.compile(pattern)
    except re.error as problem:
        raise ValueError(f"ssl.principal.mapping.rules: {pattern!r}: {problem}") from None

    def apply(subject: str) -> str | None:
        found = compiled.fullmatch(subject)
        if found is None:
            return None
        name = _REFERENCE.sub(lambda reference: _referred(found, reference), replacement)
        return {"L": name.lower, "U": name.upper}.get(case, lambda: name)()

    return apply


def _referred(found: re.Match[str], reference: re.Match[str]) -> str:
    """The text of a group such as ``$1``; the literal text if there is no such group."""
    if reference[1] is not None:
        return reference[1]
    number, rest = reference[2], ""
    while int(number) > (found.re.groups or 0) and len(number) > 1:
        number, rest = number[:-1], number[-1] + rest
    if int(number) > (found.re.groups or 0):
        return reference[0]
    return (found[int(number)] or "") + rest
