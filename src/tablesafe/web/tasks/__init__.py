"""What the worker process of a session computes: runs, and looks at data, results and windows of tables."""
