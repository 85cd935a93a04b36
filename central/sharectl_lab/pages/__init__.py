"""Tables and pages of what runs of the twin have shown.

In: Outcomes and results.
Out: Text, JSON, HTML, SVG.
"""
