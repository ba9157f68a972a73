"""Client libraries: which one a member uses, its abilities, and its names for Kafka's settings."""
