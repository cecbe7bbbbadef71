"""Programs with phases to parameters: one message-passing step per phase, the same weights in each.

validate    every reason why it cannot be done
reading     which registers a name means in which phase
registers   the state as registers, and registers as hidden units
logits      every phase's selection as attention units, silent in all other phases
errors      how far registers can be off
noise       how far logits can be off
constants   the weights of the logits and decoders, from the domain
certificate what is guaranteed, and on which inputs
decoders    classes, choices, pointers and signals as predictions
build       the passes in order, and the network
"""
