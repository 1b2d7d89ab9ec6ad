"""Whether random walks have forgotten where they began: effective sample size and potential scale reduction.

(Gelman et al., Bayesian Data Analysis, 3rd edition, 11.4 and 11.5; Geyer, "Practical Markov chain Monte Carlo",
Statistical Science 7, 1992; Vehtari et al., "Rank-normalization, folding, and localization: an improved R̂", 2021.)
"""

from __future__ import annotations

import numpy as np

from tablesafe.core.equations import Floats

BLOCK = 512
"""Cells looked at together."""


def convergence(draws: Floats) -> tuple[Floats, Floats]:
    """Effective sample size and R̂ of each cell, from draws of shape (chains, draws, cells); every chain is halved.

    A chain that does not move at all has forgotten nothing: its sample size is 0, its R̂ infinite.
    """
    chains, length, n = draws.shape
    half = length // 2
    halves = draws[:, : 2 * half].reshape(2 * chains, half, n)
    sizes, ratios = np.empty(n), np.empty(n)
    for first in range(0, n, BLOCK):
        part = slice(first, min(first + BLOCK, n))
        sizes[part], ratios[part] = _of_halves(halves[:, :, part].astype(np.float64))
    return sizes, ratios


def _of_halves(draws: Floats) -> tuple[Floats, Floats]:
    chains, length, _ = draws.shape
    means = draws.mean(axis=1)
    covariance = _autocovariance(draws - means[:, None])
    within = covariance[:, 0].mean(axis=0) * length / (length - 1)
    total = covariance[:, 0].mean(axis=0) + means.var(axis=0, ddof=1)
    moves = (within > 0) & (draws.var(axis=1).min(axis=0) > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(moves, np.sqrt(total / within), np.inf)
        correlation = 1.0 - (within - covariance.mean(axis=0) * length / (length - 1)) / total
    size = chains * length / np.maximum(_correlation_time(correlation), 1.0 / np.log10(chains * length))
    return np.where(moves, np.minimum(size, chains * length), 0.0), ratio


def _autocovariance(centred: Floats) -> Floats:
    """Of each chain and cell at every lag, by the fast Fourier transform."""
    length = centred.shape[1]
    room = 2 ** int(np.ceil(np.log2(2 * length)))
    spectrum = np.fft.rfft(centred, n=room, axis=1)
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, n=room, axis=1)[:, :length] / length)


def _correlation_time(correlation: Floats) -> Floats:
    """Geyer's sum of the autocorrelations: pairs of lags, falling, for as long as they are positive."""
    even = 2 * (correlation.shape[0] // 2)
    pairs = correlation[:even:2] + correlation[1:even:2]
    positive = np.cumprod(pairs > 0, axis=0)
    falling = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    return np.asarray(2.0 * falling.sum(axis=0) - 1.0)
