"""Spark's driver of the rows that rules see."""
