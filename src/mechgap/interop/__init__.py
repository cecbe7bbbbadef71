"""Bridges to other people's software, each imported only when called."""
