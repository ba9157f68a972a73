"""Sweeps: a scenario of the laboratory, played with a grid of its settings and many seeds, as Spark tasks."""
