"""Faults: the rules of a test, and what becomes of the requests and answers that they choose."""
