"""All that a consumer remembers between two steps: plain data, in one struct with a part for each room."""
