"""What is found in logs, held against what was done."""
