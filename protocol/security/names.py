"""Names with a meaning of their own, apart from messages: a command's help can do without those."""

from __future__ import annotations

from typing import Final

DEFAULT: Final = "<default>"
"""Kafka's word for all that have no entry of their own. No user, client id or address can have this name here."""
