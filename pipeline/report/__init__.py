"""The report: tables in Parquet, findings in the console, and one HTML page that shows what happened."""
