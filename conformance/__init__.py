"""Holds the emulator against the real thing: a running Apache Kafka broker, recorded, and other emulators beside it."""
