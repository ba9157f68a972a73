"""Judges any broker by what a real Kafka answered: plays its recorded scripts, compares each answer, and reports."""
