"""Explore every order of what a small world leaves open."""
