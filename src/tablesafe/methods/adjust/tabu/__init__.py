"""Tabu search: adjusted tables that are good by any measure, linear or not."""
