"""How recorded lives are played again: on virtual time, and compared."""
