"""Blank and impute: chosen values are taken out and drawn anew."""
