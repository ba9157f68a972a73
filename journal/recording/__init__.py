"""Rows that pages draw of a group's life, made of events."""
