"""The paper's tables and figures beside our own."""
