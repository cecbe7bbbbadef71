"""How far learned networks are from the algorithm: pure functions, arrays in, numbers out."""
