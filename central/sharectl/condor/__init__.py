"""Everything that talks to HTCondor: daemons, configuration, expressions.

In: Addresses, deadlines, ads and configuration as HTCondor writes them.
Out: Records of the model, in its units; a problem for each daemon that failed.
"""
