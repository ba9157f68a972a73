"""Administration by Kafka's tools and by clients of three languages, on a real Kafka and on Rejoin."""
