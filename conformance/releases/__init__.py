"""Plays the recorded scripts on older releases of Kafka, and keeps the answers that differ from those of 4.4."""
