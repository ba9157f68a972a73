"""Events, defined once, and the journal that keeps them on disk."""

import rejoin.release as _release  # noqa: F401 (refuses a foreign rejoin in the same folder)
