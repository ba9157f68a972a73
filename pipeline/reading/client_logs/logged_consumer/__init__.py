"""One consumer as its log shows it: its state after each line, and what the line says."""
