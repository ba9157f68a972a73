"""Transcripts: what was done to a coordinator and what came of it, as text.

``grammar`` says how a request reads as a command, in both directions; ``writer`` and the simulator write with it, and
``player`` plays a transcript against a fresh node: ``interpreter`` runs each command, ``driver`` steps the node.
"""
