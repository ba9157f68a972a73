"""The coordinator's state machine: plain functions of what happened and when. No I/O, clock, randomness or logging."""
