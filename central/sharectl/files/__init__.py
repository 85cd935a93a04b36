"""Files that are replaced whole, documents, YAML with positions.

In: Paths, bytes and text of strangers.
Out: Values with their place in the file, or an error with place and remedy.
"""
