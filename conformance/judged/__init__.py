"""Runs ``rejoin conform`` on several brokers with the settings of each recording, and counts the outcomes."""
