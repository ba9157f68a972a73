"""Random scenarios, the checks that each must pass, and the shrinking of failures."""
