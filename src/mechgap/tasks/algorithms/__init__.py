"""Ground-truth traces of the CLRS tasks, as JAX code for one graph, equal to dm-clrs's."""
