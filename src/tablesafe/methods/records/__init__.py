"""Methods that change records (swapping, noise, blank-and-impute), and what they share about those records."""
