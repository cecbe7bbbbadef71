"""Whole experiments: from a program's name to an answer."""
