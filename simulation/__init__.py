"""Both state machines on a virtual clock: the real coordinator core and the real consumer core, with everything that
can go wrong between them. The same seed gives the same bytes."""
