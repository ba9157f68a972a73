"""Plays the recorded scripts on other emulators of Kafka, and counts how many each passes."""
