"""The producer's state machine: no I/O, no clock, no randomness."""
