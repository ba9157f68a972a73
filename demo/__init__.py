"""A group lives through joining, crashing and restarting, with real processes, live in the terminal.

``rejoin demo``. Everything runs on the loopback interface and is stopped at the end.
"""
