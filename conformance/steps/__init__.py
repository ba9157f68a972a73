"""The language of scripts in YAML."""
