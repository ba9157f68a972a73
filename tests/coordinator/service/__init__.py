"""The service and the journal."""
