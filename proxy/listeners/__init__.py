"""The listeners of a proxy: who may connect, and how."""
