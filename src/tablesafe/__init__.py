"""Make statistical tables safe to publish, and prove it."""
