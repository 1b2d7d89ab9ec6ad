"""Multiplicative noise on records, and random adjustment of sensitive cells."""
