"""Whether a finished run is good enough: gates, statistics, baselines, comparison, reports.

Everything here reads exact records and finished files. It starts no load, opens no socket and knows no
Locust; what watches a run while it goes on (`abort`) is told the time and the records by its caller.
"""
