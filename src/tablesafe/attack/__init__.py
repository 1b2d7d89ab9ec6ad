"""The attack: what an intruder would guess from a release, and how near to the truth it comes."""
