"""The state of the share coordinator: start offset and state batches of each share-partition, kept in
``__share_group_state``. Kafka: ShareCoordinatorShard.
"""
