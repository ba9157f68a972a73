"""The control API, over HTTP and on its own."""
