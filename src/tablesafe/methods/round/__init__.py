"""Rounding to a base: controlled, random, conventional."""
