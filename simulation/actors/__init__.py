"""Who takes part: nodes, consumers, and clients that misbehave."""
