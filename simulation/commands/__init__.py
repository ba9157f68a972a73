"""The command lines of ``rejoin simulate``, ``search`` and ``gallery``, and what they do."""
