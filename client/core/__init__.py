"""The consumer's own state machine: plain functions of what happened and when, without I/O, clock or randomness."""
