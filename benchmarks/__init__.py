"""Measure tablesafe beside the naive way and beside other programs, on the same instance in one run.

python -m benchmarks list                # instances, tasks with their programs, suites
python -m benchmarks run smoke           # a suite: benchmarks/results/SUITE.json and .md
python -m benchmarks page                # docs/benchmarks.md, its plots, and the README's table, from the results
python -m benchmarks fresh               # whether the results are of the engine that is here; --strict for a release

Instances, programs and suites register themselves: `registry` holds them, `instances`, `tasks` and `suites` fill it.
Every program runs in a process of its own; a program that fails or takes too long is a row with its reason.
"""
