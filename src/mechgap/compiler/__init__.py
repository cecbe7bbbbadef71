"""Program to parameters: named passes, constants derived from a domain, and verification."""
