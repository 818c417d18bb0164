"""Benchmarks whose figures stand side by side: a file here and a row of the table for each study.

A study is a benchmark like any other, planned by `launch.matrix`, recorded and resumed launch by launch. What cannot be
launched is a cell too: its record is refused, with the error's code and cause.
"""

from __future__ import annotations

from vsphere_ml.bench.studies import ats, passthrough, pvrdma, tcp_stacks

STUDIES = {each.name: each for each in (pvrdma.DESIGN, ats.DESIGN, passthrough.DESIGN, tcp_stacks.DESIGN)}
