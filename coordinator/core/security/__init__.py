"""Who may do what: state that records of the topics log make, and the authorizer that reads it."""
