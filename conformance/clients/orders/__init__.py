"""Orders of answers that show bugs of pinned clients, with the versions that have them and those that do not."""
