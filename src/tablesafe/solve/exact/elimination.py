"""Sparse Gaussian elimination modulo a prime: exact, fast, and without any growth of numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Integers, Mask
from tablesafe.work.compiled import compiled

PRIME = 2**31 - 1
"""Arithmetic modulo a prime whose products fit into 64 bits."""
ROOM = 2.0**62
"""Whole numbers below it fit into 64 bits, and so does the sum of two."""


@compiled
def inverse(a: int) -> int:
    """The inverse modulo the prime, by Fermat's little theorem."""
    result, power, base = 1, PRIME - 2, a % PRIME
    while power:
        if power & 1:
            result = result * base % PRIME
        base = base * base % PRIME
        power >>= 1
    return result


class Echelon(NamedTuple):
    """Rows with 1 at their pivot and nothing at the pivots before; `first` and `length` say where each row stands."""

    fits: bool
    """Whether it stayed below the limit of entries."""
    pivot_row: Integers
    pivot_column: Integers
    first: Integers
    length: Integers
    entry: Integers
    number: Integers


def echelon(matrix: sparse.csr_array, most: int) -> Echelon:
    """Eliminate, taking the shortest row and its rarest column next, which keeps the rows short."""
    m, n = matrix.shape
    column = matrix.indices.astype(np.int64)
    start, length = matrix.indptr.astype(np.int64), np.diff(matrix.indptr).astype(np.int64)
    rarity = np.bincount(column, minlength=n)
    pivot_row, pivot_column = np.empty(min(m, n), np.int64), np.empty(min(m, n), np.int64)
    first, number = start[:-1].copy(), matrix.data.astype(np.int64) % PRIME
    pivots, column, number = _eliminate(start, column, number, first, length, rarity, pivot_row, pivot_column, most)
    return Echelon(pivots >= 0, pivot_row[:pivots], pivot_column[:pivots], first, length, column, number)


@compiled
def _eliminate(
    start: Integers, entry: Integers, number: Integers, first: Integers, length: Integers, rarity: Integers,
    pivot_row: Integers, pivot_column: Integers, most: int,
) -> tuple[int, Integers, Integers]:  # fmt: skip
    """Returns the number of pivots (−1 when given up), and the columns and values of the rows."""
    m, n, used = len(length), len(rarity), len(entry)
    head, following, holder, links = _column_lists(start, entry, n)
    active = np.ones(m, np.bool_)
    bucket, queue_row, queue_next, queued = _queue(length, n)
    place = np.full(n, -1)
    pivots, shortest = 0, 0
    while True:
        r, shortest = _shortest(bucket, queue_row, queue_next, length, active, shortest)
        if r < 0:
            break
        active[r] = False
        if length[r] == 0:
            continue
        c = _rarest(entry, first[r], length[r], rarity)
        _normalise(entry, number, first[r], length[r], c, rarity)
        pivot_row[pivots], pivot_column[pivots] = r, c
        pivots += 1
        link = head[c]
        while link >= 0:
            t = holder[link]
            link = following[link]
            if not active[t]:
                continue
            factor = _coefficient(entry, number, first[t], length[t], c)
            if factor == 0:
                continue
            room = length[t] + length[r]
            if used + room > len(entry):
                entry, number, used = _compact(entry, number, first, length, room)
                if used > most:
                    return -1, entry, number
            if links + length[r] > len(holder):
                holder, following = _longer(holder, links + length[r]), _longer(following, links + length[r])
            used, links = _subtract(
                entry, number, first, length, t, r, factor, used, place, rarity, head, following, holder, links
            )
            if queued >= len(queue_row):
                queue_row, queue_next = _longer(queue_row, queued + 1), _longer(queue_next, queued + 1)
            queue_row[queued], queue_next[queued] = t, bucket[length[t]]
            bucket[length[t]] = queued
            queued += 1
            shortest = min(shortest, length[t])
    return pivots, entry, number


@compiled
def _column_lists(start: Integers, column: Integers, n: int) -> tuple[Integers, Integers, Integers, int]:
    """For each column a linked list of the rows that hold it; entries that cancel stay in and are skipped."""
    head, following, holder = np.full(n, -1), np.empty(len(column), np.int64), np.empty(len(column), np.int64)
    for r in range(len(start) - 1):
        for z in range(start[r], start[r + 1]):
            following[z], holder[z] = head[column[z]], r
            head[column[z]] = z
    return head, following, holder, len(column)


@compiled
def _queue(length: Integers, n: int) -> tuple[Integers, Integers, Integers, int]:
    """Rows by their length, as linked lists; outdated entries stay in and are skipped."""
    bucket, row, following = np.full(n + 1, -1), np.empty(len(length), np.int64), np.empty(len(length), np.int64)
    for r in range(len(length)):
        row[r], following[r] = r, bucket[length[r]]
        bucket[length[r]] = r
    return bucket, row, following, len(length)


@compiled
def _shortest(
    bucket: Integers, row: Integers, following: Integers, length: Integers, active: Mask, at: int
) -> tuple[int, int]:
    while at < len(bucket):
        z = bucket[at]
        if z < 0:
            at += 1
            continue
        bucket[at] = following[z]
        if active[row[z]] and length[row[z]] == at:
            return row[z], at
    return -1, at


@compiled
def _rarest(entry: Integers, first: int, length: int, rarity: Integers) -> int:
    best = entry[first]
    for z in range(first + 1, first + length):
        if rarity[entry[z]] < rarity[best]:
            best = entry[z]
    return int(best)


@compiled
def _normalise(entry: Integers, number: Integers, first: int, length: int, column: int, rarity: Integers) -> None:
    """Make the pivot 1, and take the row out of the count of its columns."""
    scale = inverse(_coefficient(entry, number, first, length, column))
    for z in range(first, first + length):
        number[z] = number[z] * scale % PRIME
        rarity[entry[z]] -= 1


@compiled
def _coefficient(entry: Integers, number: Integers, first: int, length: int, column: int) -> int:
    for z in range(first, first + length):
        if entry[z] == column:
            return int(number[z])
    return 0


@compiled
def _compact(
    entry: Integers, number: Integers, first: Integers, length: Integers, room: int
) -> tuple[Integers, Integers, int]:
    """Drop rows that were replaced, into arrays with space for as much again."""
    live = 0
    for r in range(len(first)):
        live += length[r]
    new_entry, new_number = np.empty(2 * live + room, np.int64), np.empty(2 * live + room, np.int64)
    used = 0
    for r in range(len(first)):
        begin, first[r] = first[r], used
        for z in range(begin, begin + length[r]):
            new_entry[used], new_number[used] = entry[z], number[z]
            used += 1
    return new_entry, new_number, used


@compiled
def _longer(array: Integers, least: int) -> Integers:
    new = np.empty(2 * least, np.int64)
    for i in range(len(array)):
        new[i] = array[i]
    return new


@compiled
def _subtract(
    entry: Integers, number: Integers, first: Integers, length: Integers, target: int, source: int, factor: int,
    used: int, place: Integers, rarity: Integers, head: Integers, following: Integers, holder: Integers, links: int,
) -> tuple[int, int]:  # fmt: skip
    """Replace row `target` by itself less `factor` times row `source`, at the end of the arrays."""
    begin = used
    for z in range(first[target], first[target] + length[target]):
        entry[used], number[used] = entry[z], number[z]
        place[entry[z]] = used
        used += 1
    own = used
    for z in range(first[source], first[source] + length[source]):
        c, by = entry[z], factor * number[z] % PRIME
        at = place[c]
        if at >= 0:
            number[at] = (number[at] - by) % PRIME
        else:
            entry[used], number[used] = c, PRIME - by
            used += 1
            rarity[c] += 1
            holder[links], following[links] = target, head[c]
            head[c] = links
            links += 1
    for z in range(begin, own):
        place[entry[z]] = -1
    kept = begin
    for z in range(begin, used):
        if number[z] != 0:
            entry[kept], number[kept] = entry[z], number[z]
            kept += 1
        else:
            rarity[entry[z]] -= 1
    first[target], length[target] = begin, kept - begin
    return kept, links


def substitute(echelon: Echelon, n: int, most: int) -> sparse.csr_array | None:
    """Every column as a combination of the columns that are no pivot, in residues; None beyond `most` entries."""
    begin, count, is_pivot = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_)
    is_pivot[echelon.pivot_column] = True
    used, column, residue = _back(*echelon[1:], is_pivot, begin, count, most)
    if used < 0:
        return None
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])
    at = np.repeat(begin - start[:-1], count) + np.arange(start[-1])
    rows = sparse.csr_array((residue[at], column[at], start), shape=(n, n))
    rows.sort_indices()
    return rows


@compiled
def _back(
    pivot_row: Integers, pivot_column: Integers, first: Integers, length: Integers, entry: Integers, number: Integers,
    is_pivot: Mask, begin: Integers, count: Integers, most: int,
) -> tuple[int, Integers, Integers]:  # fmt: skip
    """Substitute from the last pivot back; returns how many entries there are (−1: too many), and the entries."""
    n, used = len(begin), 0
    column, residue = np.empty(2 * n + 1, np.int64), np.empty(2 * n + 1, np.int64)
    for c in range(n):
        if not is_pivot[c]:
            column[used], residue[used], begin[c], count[c] = c, 1, used, 1
            used += 1
    total, member, listed = np.zeros(n, np.int64), np.zeros(n, np.bool_), np.empty(n, np.int64)
    for i in range(len(pivot_row) - 1, -1, -1):
        r, c, found = pivot_row[i], pivot_column[i], 0
        for z in range(first[r], first[r] + length[r]):
            j = entry[z]
            if j != c:
                factor = PRIME - number[z]
                for y in range(begin[j], begin[j] + count[j]):
                    q = column[y]
                    if not member[q]:
                        member[q] = True
                        listed[found] = q
                        found += 1
                    total[q] = (total[q] + factor * residue[y]) % PRIME
        if used + found > len(column):
            if used + found > most:
                return -1, column, residue
            column, residue = _longer(column, used + found), _longer(residue, used + found)
        begin[c] = used
        for y in range(found):
            q = listed[y]
            if total[q] != 0:
                column[used], residue[used] = q, total[q]
                used += 1
            total[q], member[q] = 0, False
        count[c] = used - begin[c]
    return used, column, residue
