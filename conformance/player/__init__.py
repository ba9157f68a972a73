"""Writes recordings of scripts, and draws random ones."""
