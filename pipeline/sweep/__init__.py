"""What would have happened: a scenario of the laboratory, a grid of its settings and many seeds, as Spark tasks."""
