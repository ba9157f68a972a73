"""Rows of tables from the events of one group: plain functions for Spark's tasks, small reports and ``rejoin why``."""
