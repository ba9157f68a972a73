"""Random scenarios, the checks they are held against, and how a failure is made small."""
