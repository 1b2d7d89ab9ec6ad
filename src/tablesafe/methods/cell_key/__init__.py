"""The cell key method: keys, perturbation tables and their design, counts and magnitudes."""
