"""τ-ARGUS: its files read and written, and in `batch` its jobs translated into ours and ours into its."""
