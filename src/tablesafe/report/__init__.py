"""Reports and plots: what the office, or the public, looks at."""
