"""Starting Spark: Java, Python, settings."""
