"""The arena: public instances, patterns that programs made for them, and a checker that needs none of the programs.

python -m benchmarks.arena list                              # instances, and who has entered a pattern
python -m benchmarks.arena make flat_2d_20 table.jj          # an instance as a JJ file, from its seed
python -m benchmarks.arena check flat_2d_20 mine.txt         # a pattern: what it costs, what it leaves open
python -m benchmarks.arena prove flat_2d_20                  # a lower bound with its certificate
python -m benchmarks.arena enter flat_2d_20                  # patterns of the programs that are here
python -m benchmarks.arena league                            # check everything, write docs/benchmarks/arena.md

`check.py` is one file that imports SciPy and nothing of this repository: whoever doubts a line of the league copies it.
"""
