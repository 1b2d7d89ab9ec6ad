"""Linear algebra and programs in whole numbers: elimination, null spaces, ranges, proofs of what solvers say."""
