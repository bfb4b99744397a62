"""What was seen: one cumulative aggregate per process, and everything that reads it or the records.

Nothing here opens a stream, knows Locust or decides an outcome. `aggregate` counts, `exporter` shows the
counts to Prometheus, `results` keeps the exact records, `summary` and `table` tell a finished run.
"""
