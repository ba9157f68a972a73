"""Internal topics with data partitions that keep the state of a coordinator: of transactions, of share-partitions."""
