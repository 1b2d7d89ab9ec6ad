"""The files of τ-ARGUS, read and written, and in `batch` what its batch files say; `batch_jobs` runs them."""
