"""The operations of the control API, in a table for each subject."""
