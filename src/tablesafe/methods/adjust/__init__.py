"""Controlled tabular adjustment: every cell published, none true that would give somebody away, all sums kept."""
