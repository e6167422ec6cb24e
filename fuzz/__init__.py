"""Hostile inputs for Towpath: a corpus of bad files, mutators, and what must hold for all of them."""
