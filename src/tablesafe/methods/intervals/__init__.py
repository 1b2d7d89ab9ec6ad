"""Publish intervals in the place of withheld values, and check that they do not give the values away."""
