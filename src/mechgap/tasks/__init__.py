"""The data: what CLRS asks, its graphs and its ground-truth traces."""
