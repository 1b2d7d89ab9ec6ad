"""What the worker process of a session computes: it looks at data, results and windows of tables."""
