"""The only code that talks to HTCondor, files, commands and the clock; units are converted here."""
