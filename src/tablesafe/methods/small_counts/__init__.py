"""Small-count rounding: only what makes a small published count is changed, and everything still adds up."""
