"""The audit: what an attacker can derive from a release, and the proof of what it cannot."""
