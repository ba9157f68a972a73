"""Protection of a listener: Kafka's four security protocols, and the setting that names one for each listener."""

from __future__ import annotations

from enum import StrEnum


class SecurityProtocol(StrEnum):
    """Whether connections are encrypted, and whether their clients log in by SASL. Kafka: SecurityProtocol."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_tls(self) -> bool:
        return self.value.endswith("SSL")

    @property
    def has_sasl(self) -> bool:
        return self.value.startswith("SASL")

    @classmethod
    def of(cls, *, tls: bool, sasl: bool) -> SecurityProtocol:
        """The protocol that has these, and no more."""
        kind = "SSL" if tls else "PLAINTEXT"
        return cls(f"SASL_{kind}" if sasl else kind)


def protocols_from(text: str) -> dict[str, SecurityProtocol]:
    """Protocols by listener from ``NAME:PROTOCOL``, separated by commas. Raises ``ValueError`` for anything else.

    Kafka: listener.security.protocol.map.
    """
    found: dict[str, SecurityProtocol] = {}
    for part in text.split(",") if text.strip() else ():
        name, _, protocol = (each.strip().upper() for each in part.partition(":"))
        if not name or protocol not in SecurityProtocol.__members__:
            known = ", ".join(SecurityProtocol)
            raise ValueError(f"{part.strip()!r}: expected NAME:PROTOCOL with one of {known}")
        if name in found:
            raise ValueError(f"{part.strip()!r}: {name} is named twice")
        found[name] = SecurityProtocol(protocol)
    return found
