"""The GATv2 processor: one message-passing step, as in the paper and in dm-clrs.

With ``c = [node features | hidden]``, receiver i and sender j:

    ζ_ij = W_in c_j + W_out c_i + W_edge e_ij + W_meta g (+ B_ij)
    a_ij = ω · leaky_relu(ζ_ij)                     per head
    α_ij = softmax_j(a_ij + 1e9 · (mask_ij - 1))
    h'_i = layer_norm(relu(Σ_j α_ij (W_val c_j + W_info e_ij) + W_skip c_i))

`B` (pre-attention bias) and `W_info` (edge information) are the paper's two options. The mask is 1
along the graph's edges; in `gatv2_full` it is 1 everywhere.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from mechgap.errors import InvalidInput
from mechgap.network.config import NetworkConfig
from mechgap.network.linear import LayerNorm, Linear, side_by_side
from mechgap.network.pairwise import Activation, pairwise


class Message(NamedTuple):
    """What one step computed."""

    logits: Float[Array, "batch heads receivers senders"]
    attention: Float[Array, "batch heads receivers senders"]
    hidden: Float[Array, "batch nodes hidden"]


class GATv2(eqx.Module):
    """Graph attention in which the sender's and receiver's features meet before ω."""

    value: Linear
    skip: Linear
    sender: Linear
    receiver: Linear
    edge: Linear
    meta: Linear
    attention: Float[Array, "heads head_size"]
    attention_bias: Float[Array, "heads"]
    info: Float[Array, "hidden head_size"] | None
    pre_attention_bias: Float[Array, "nodes nodes"] | None
    norm: LayerNorm | None

    @staticmethod
    def initial(key: Key[Array, ""], config: NetworkConfig) -> "GATv2":
        """dm-clrs's initialisation; `B` starts at zero, `W_info` as a head's linear layer."""
        hidden, heads, head = config.hidden_size, config.nb_heads, config.head_size
        value, skip, sender, receiver, edge, meta, omega, info = jax.random.split(key, 8)
        wide = 2 * hidden
        omegas = [Linear.initial(k, head, 1).weight[:, 0] for k in jax.random.split(omega, heads)]
        nodes = config.pre_att_bias_nodes
        return GATv2(
            value=Linear.initial(value, wide, hidden),
            skip=Linear.initial(skip, wide, hidden),
            sender=Linear.initial(sender, wide, hidden),
            receiver=Linear.initial(receiver, wide, hidden),
            edge=Linear.initial(edge, hidden, hidden),
            meta=Linear.initial(meta, hidden, hidden),
            attention=jnp.stack(omegas),
            attention_bias=jnp.zeros(heads),
            info=Linear.initial(info, hidden, head).weight if config.use_edge_info else None,
            pre_attention_bias=jnp.zeros((nodes, nodes)) if config.use_pre_att_bias else None,  # pyright: ignore[reportArgumentType]
            norm=LayerNorm.initial(hidden) if config.use_ln else None,
        )

    def on_channels(self, node_encoder: Linear, edge_encoder: Linear) -> "PreparedGATv2":
        """This processor with the encoders multiplied in."""
        edge = self.edge.after(edge_encoder)
        info = None
        if self.info is not None:
            info = Linear(self.info, jnp.zeros_like(self.info[0])).after(edge_encoder)
        maps = [self.receiver, self.sender, self.value, self.skip]
        return PreparedGATv2(
            projections=side_by_side(maps).on_channels(node_encoder),
            edge=edge.weight,
            meta=Linear(self.meta.weight, self.meta.bias + edge.bias),
            attention=self.attention,
            attention_bias=self.attention_bias,
            info=info,
            pre_attention_bias=self.pre_attention_bias,
            norm=self.norm,
        )


class Projected(NamedTuple):
    """``W c`` for each of the four matrices that read ``c``."""

    receiver: Float[Array, "batch nodes hidden"]
    sender: Float[Array, "batch nodes hidden"]
    value: Float[Array, "batch nodes hidden"]
    skip: Float[Array, "batch nodes hidden"]


class PreparedGATv2(eqx.Module):
    """The processor as a run uses it: encoders are linear and are multiplied in once.

    It reads channels (the few numbers that encoders read) in place of features. All of ζ that does
    not depend on the sender is counted as the receiver's.
    """

    projections: Linear
    edge: Float[Array, "channels hidden"]
    meta: Linear
    attention: Float[Array, "heads head_size"]
    attention_bias: Float[Array, "heads"]
    info: Linear | None
    pre_attention_bias: Float[Array, "nodes nodes"] | None
    norm: LayerNorm | None

    def project(
        self, channels: Float[Array, "batch nodes channels"], hidden: Float[Array, "..."]
    ) -> Projected:
        """The four projections of ``c = [node features | hidden]``."""
        return Projected(*jnp.split(self.projections.of_parts(channels, hidden), 4, axis=-1))

    def logits(
        self,
        projected: Projected,
        edges: Float[Array, "batch nodes nodes channels"],
        graph: Float[Array, "batch hidden"] | None,
    ) -> Float[Array, "batch heads receivers senders"]:
        """ω · leaky_relu(ζ), before the mask."""
        everywhere = self.meta.bias if graph is None else self.meta(graph)[:, None]
        edge = self.edge
        if self.pre_attention_bias is not None:  # one more channel, that every unit reads
            bias = self._bias_for(edges.shape[1])[..., None]
            edges = jnp.concatenate(
                [edges, jnp.broadcast_to(bias, (*edges.shape[:-1], 1))], axis=-1
            )
            edge = jnp.concatenate([edge, jnp.ones_like(edge[:1])])
        scores = pairwise(
            Activation.LEAKY_RELU,
            projected.receiver + everywhere,
            projected.sender,
            edges,
            edge,
            self.attention,
        )
        return scores + self.attention_bias[:, None, None]

    def update(
        self,
        attention: Float[Array, "batch heads receivers senders"],
        projected: Projected,
        edges: Float[Array, "batch nodes nodes channels"],
    ) -> Float[Array, "batch nodes hidden"]:
        """The next hidden state, given who attends to whom."""
        value = projected.value
        values = value.reshape(*value.shape[:-1], *self.attention.shape)
        selected = jnp.swapaxes(attention @ jnp.swapaxes(values, 1, 2), 1, 2)
        if self.info is not None:
            # Attention weighs the few channels first; the encoder and W_info follow once.
            seen = jnp.einsum("bhij,bijc->bihc", attention, edges)
            total = jnp.einsum("bhij->bih", attention)[..., None]
            selected = selected + seen @ self.info.weight + total * self.info.bias
        hidden = jax.nn.relu(selected.reshape(value.shape) + projected.skip)
        return hidden if self.norm is None else self.norm(hidden)

    def _bias_for(self, nodes: int) -> Float[Array, "nodes nodes"]:
        assert self.pre_attention_bias is not None
        made_for = self.pre_attention_bias.shape[0]
        if nodes != made_for:
            raise InvalidInput(
                f"a network with pre-attention bias runs at the one size that it was made for, "
                f"{made_for} nodes; got {nodes}"
            )
        return self.pre_attention_bias


def masked_softmax(
    logits: Float[Array, "batch heads receivers senders"],
    support: Bool[Array, "batch receivers senders"],
) -> Float[Array, "batch heads receivers senders"]:
    """Attention over senders. The mask is added, as in dm-clrs, so it is large, not infinite."""
    mask = (support.astype(logits.dtype) - 1.0) * 1e9
    return jax.nn.softmax(logits + mask[:, None], axis=-1)
