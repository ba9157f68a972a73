"""Builds the laboratory as a folder of files: the same cores, played by Python in the browser (Pyodide)."""
