"""Noise on what respondents reported, or on sensitive cells."""

from __future__ import annotations

from tablesafe.methods.records.noise.noise import Noise

__all__ = ["Noise"]
