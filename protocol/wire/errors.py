"""What cannot be read."""


class RecordsError(ValueError):
    """Bytes that are no records of a batch."""


class CompressionError(RecordsError):
    """Packed records that cannot be unpacked: damaged, of an unknown codec, or too large."""
