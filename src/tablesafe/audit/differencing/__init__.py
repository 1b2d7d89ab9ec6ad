"""Differencing: what several published tables give away together that none of them gives away alone."""
