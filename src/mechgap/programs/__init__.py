"""What an algorithm is: a small language, its meaning, and a library of programs."""
