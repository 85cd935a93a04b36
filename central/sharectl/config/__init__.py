"""The operator's YAML.

In: A file, environment, options that override it.
Out: A `Config` with the law's own records, or all problems at once; advice.
"""
