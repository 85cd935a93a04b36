"""Tables, JSON and the page: everything that a person reads.

In: Records.
Out: Text, JSON, HTML, SVG.
"""
