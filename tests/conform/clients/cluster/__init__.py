"""Troubles on a cluster behind a proxy."""
