"""SASL's mechanisms as Kafka has them, both sides of each, without I/O."""
