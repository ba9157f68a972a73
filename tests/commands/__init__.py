"""Tests of all commands."""
