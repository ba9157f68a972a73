"""Explorations that outgrow one process."""
