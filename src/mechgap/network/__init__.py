"""One architecture, compiled or learned: encoders, GATv2 processor, decoders."""
