"""``report.html``: finished runs as one page that opens offline, for people who were not there.

The page has no script and loads nothing: charts are drawn here, as SVG, hints are titles of their parts, and
a content security policy forbids the rest. So it weighs kilobytes where a charting library weighs megabytes,
prints, mails, and cannot run what a server wrote into an error message.
"""
