"""Rejoin: Kafka's group coordinator as a service, consumers that join it, a virtual clock for both, and a pipeline that
explains what happened.

The top-level folders of the repository are its packages: ``rejoin.protocol`` is ``protocol/``, and so on.
"""
