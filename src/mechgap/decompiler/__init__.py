"""From a network back to a program of the language: what does it run?"""
