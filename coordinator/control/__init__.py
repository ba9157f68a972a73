"""A coordinator in other people's tests: it fails on command, waits for a state, and has a clock to drive.

Nothing here is imported unless the control API is on. The fault injector stands between the service and the runtime,
and holds up, refuses and loses requests as its rules say. Every step of the node is recorded; all evidence is written
from that.
"""
