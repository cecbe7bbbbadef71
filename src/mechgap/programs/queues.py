"""Algorithms that take the smallest node out of a queue: it must be known inside the step.

In the first phase everyone looks at the queue's smallest node, which is done from now on. In the
second everyone who is not done looks at the best of the nodes that are, and everyone who is done
at its parent. So nothing has to be remembered: whoever is reached sees again in every step what it
was reached by.
"""

from mechgap.lang import (
    Bool,
    Choice,
    Float,
    Phase,
    Pointer,
    Program,
    edge,
    first,
    init,
    minimum,
    other,
    self,
    where,
    zero,
)

pi, dist, key = Pointer("pi"), Float("dist"), Float("key")
done, queued, taken, u = Bool("done"), Bool("queued"), Bool("taken"), Choice("u")

dijkstra = Program(
    name="dijkstra",
    task="dijkstra",
    inputs={"idx": "pos", "start": "s", "weight": "A", "link": "adj"},
    hidden=(pi, dist, done, queued, taken, u),
    sees_all=True,
    init=dict(queued=init.start, u=init.start),
    phases=(
        Phase(  # take: the nearest node of the queue
            select=minimum(other.dist),
            mask=other.queued,
            update=dict(
                taken=other.queued & edge.loop,
                done=self.done | other.queued & edge.loop,
            ),
        ),
        Phase(  # relax: the shortest way over nodes that are done
            select=minimum(other.dist + edge.weight),
            mask=other.done & edge.link & ~self.done,
            otherwise=self.pi,
            update=dict(
                pi=other.idx,
                queued=other.done & ~self.done,
                dist=where(other.done & ~init.start, other.dist + edge.weight, zero),
            ),
        ),
    ),
    conclude=dict(u=first(self.taken)),
    hints={"pi_h": pi, "d": dist, "mark": done, "in_queue": queued, "u": u},
    output={"pi": pi},
)
"""Shortest paths from one source, the nearest node first."""

mst_prim = Program(
    name="mst_prim",
    task="mst_prim",
    inputs={"idx": "pos", "start": "s", "weight": "A", "link": "adj"},
    hidden=(pi, key, done, queued, taken, u),
    sees_all=True,
    init=dict(queued=init.start, u=init.start),
    phases=(
        Phase(  # take: the node of the queue with the lightest edge
            select=minimum(other.key),
            mask=other.queued,
            update=dict(
                taken=other.queued & edge.loop,
                done=self.done | other.queued & edge.loop,
            ),
        ),
        Phase(  # relax: the lightest edge to the tree
            select=minimum(edge.weight),
            mask=other.done & edge.link & ~self.done,
            otherwise=self.pi,
            update=dict(
                pi=other.idx,
                queued=other.done & ~self.done,
                key=where(other.done & ~init.start, edge.weight, zero),
            ),
        ),
    ),
    conclude=dict(u=first(self.taken)),
    hints={"pi_h": pi, "key": key, "mark": done, "in_queue": queued, "u": u},
    output={"pi": pi},
)
"""A minimum spanning tree that grows from one node by its lightest edge."""
