"""How fast worlds are explored, and how much memory a state takes."""
