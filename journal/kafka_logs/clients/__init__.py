"""Clients' log lines about their membership: one table for each library, for the writer and the parser.

``kind`` is the name of the consumer's event in :mod:`rejoin.journal.events.client` wherever there is one. Kinds of
lines that only lead to an event are ``member_state`` (consumer protocol), ``metadata_changed``, ``assignment`` (the
partitions of all members, as their leader gave them out), ``given`` (all partitions of the consumer itself),
``member_id_received``, ``response`` and ``remark``. ``topic_unavailable`` is about a topic that the client is refused.
"""
