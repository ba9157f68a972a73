"""Rules about single members, by what consumers say of themselves in their own logs."""
