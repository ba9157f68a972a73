"""Groups of a report as a page to step through."""
