"""Dashboards and alert rules, generated: one place that knows every query, so that a test can try them all.

Plain dictionaries in Grafana's classic schema (version 39) and Prometheus rule files. Nothing in here reads a
clock, a socket or a run; `files.generate` returns texts, and the command writes them.
"""
