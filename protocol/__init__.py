"""Kafka's protocol as data: messages, error codes, records and embedded formats.

Nothing here decides anything, and nothing here imports another package of ours.
"""

import rejoin.release as _release  # noqa: F401 (refuses a foreign rejoin in the same folder)
