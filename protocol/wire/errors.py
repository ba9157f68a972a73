"""Errors of messages that cannot be read or written."""


class RecordsError(ValueError):
    """Bytes that are no records of a batch."""


class CompressionError(RecordsError):
    """Packed records that cannot be unpacked: damaged, of an unknown codec, or too large."""


class SchemaError(ValueError):
    """Bytes that are no such message, or a message that cannot be written in this version.

    Kafka: SchemaException. ``field`` is the path of the field, ``problem`` what is wrong with it.
    """

    def __init__(self, field: str, problem: str, expected: str) -> None:
        super().__init__(f"{field}: {problem}; expected {expected}" if field else f"{problem}; expected {expected}")
        self.field = field
        self.problem = problem
        self.expected = expected


class ResponseTooLarge(SchemaError):
    """A response of more bytes than one may have."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__("", "the response is too large", f"at most {most_bytes:,} bytes")
