"""Real consumers of four libraries on a real broker, and half an hour's trouble within ten minutes."""
