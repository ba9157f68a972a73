"""What brings the rows that rules see to Spark."""
