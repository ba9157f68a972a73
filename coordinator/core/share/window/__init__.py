"""The state machine of one share-partition, without I/O: which records are in flight, in which state, held by whom.

``share_partition.py`` is the door. Kafka: SharePartition.
"""
