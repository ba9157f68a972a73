"""A coordinator in other people's tests: it fails on command, tells when a state is reached, and has a clock to drive.

Nothing here is imported unless the control API is on. Between the service and the runtime stands the gate, which holds
up, refuses and loses requests as its rules say; around the node stands a recorder, from which all evidence is written.
"""
