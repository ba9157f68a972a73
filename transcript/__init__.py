"""Transcripts: what was done and what came back, in one language."""
