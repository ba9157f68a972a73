"""Membership of share groups (KIP-932): members, epochs, the target, and which share-partitions are initialised.

Nothing is ever revoked, as partitions are shared: a member takes its target at once, and the group is Stable with its
first member. What happens to records is the business of the leaders of share-partitions, which know no members.

State changes by records alone (``core/groups/modern/``). ``model/`` has what a group is; the requests are here.
"""
