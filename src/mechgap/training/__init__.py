"""The learned counterpart: dm-clrs's loss and the paper's recipe."""
