"""Does a network compute what a program computes? Interchange interventions."""
