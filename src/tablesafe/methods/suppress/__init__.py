"""Complementary cell suppression: exact where it can be, fast where it must be, safe always."""
