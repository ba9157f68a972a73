"""Costs, as ratios of measurements that the same run made. ``python -m benchmarks``."""
