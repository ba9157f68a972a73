"""The model of a share group: members, epochs and share-partitions, and the records that make them."""
