"""What clients log of their own lives in a group, recorded from real ones, beside what was done to them."""
