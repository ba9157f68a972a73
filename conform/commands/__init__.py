"""The command ``rejoin conform``."""
