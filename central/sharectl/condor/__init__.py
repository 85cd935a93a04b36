"""Everything that talks to HTCondor: daemons, configuration, expressions."""
