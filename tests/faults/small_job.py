"""The job that is stopped in every way, and its records."""

from __future__ import annotations

DATA = """\
nace,region,firm,turnover
A,N,f1,120
A,N,f2,7
A,N,f3,66
A,S,f4,90
A,S,f5,41
A,S,f6,38
A,W,f7,55
A,W,f8,52
A,W,f9,49
B,N,f10,31
B,N,f11,29
B,N,f12,33
B,S,f13,214.5
B,S,f14,3
B,W,f15,61
B,W,f16,64
B,W,f17,70
C,N,f18,18
C,N,f19,22
C,N,f20,27
C,S,f21,35
C,S,f22,36
C,S,f23,31
C,W,f24,404
"""
JOB = """
[source]
file = "firms.csv"
respondent = "firm"

[dimensions.nace]

[dimensions.region]

[response]
value = "turnover"

[[rules]]
rule = "p_percent"
p = 15

[[rules]]
rule = "threshold"
n = 3

[method]
name = "suppress"
time_limit_s = 5

[attack]
attacks = []

[output]
release = ["public/table.csv", "public/copy.csv"]

[run]
temporary = "scratch"
"""
