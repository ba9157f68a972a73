"""The outcomes of a run as a table, as JUnit XML, as a page, and beside a baseline of known differences."""
