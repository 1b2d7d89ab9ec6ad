"""Record swapping: like records of different areas change places."""
