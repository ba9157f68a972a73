"""Both state machines on a virtual clock: the real coordinator core and the real consumer core, with everything that
can go wrong between them. The same seed gives the same bytes."""

import rejoin.release as _release  # noqa: F401 (refuses a foreign rejoin in the same folder)
