"""The language of scripts, and their player: it speaks the binary protocol to any broker."""
