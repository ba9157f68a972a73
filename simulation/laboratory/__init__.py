"""The laboratory: a scenario that is played step by step, looked at in any instant, and changed while it runs."""
