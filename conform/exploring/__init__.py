"""Real clients with the order of their answers chosen: played, judged by their records, shrunk."""
