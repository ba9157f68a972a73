"""The tests with executors are collected where ``make executors`` asks for them."""

from __future__ import annotations

import os

collect_ignore = [] if os.environ.get("REJOIN_EXECUTOR_TABLES") else ["test_executors.py"]
