"""A live cluster as Kafka's protocol shows it: groups, members, assignments and offsets, looked at again and again."""
