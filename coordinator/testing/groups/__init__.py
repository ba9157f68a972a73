"""Methods of the testing kit for groups of one kind."""
