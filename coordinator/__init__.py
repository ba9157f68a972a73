"""Who decides: Kafka's group coordinator. ``core`` is the state machine, ``service`` the event loop around it."""

import rejoin.release as _release  # noqa: F401 (refuses a foreign rejoin in the same folder)
