"""The consumer group protocol (KIP-848): the coordinator assigns, and each member moves in its own heartbeats.

State changes by records alone. A handler writes them with :mod:`model.changes`: each is replayed at once, and the reply
leaves when all of them are stored.

``model/`` has what a group is, ``members/`` how its members move; the requests are here.
"""
