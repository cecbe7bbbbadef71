"""The GATv2 processor: one message-passing step, as in the paper and in dm-clrs.

With ``c = [node features | hidden]``, receiver i and sender j:

    ζ_ij = W_in c_j + W_out c_i + W_edge e_ij + W_meta g (+ B_ij)
    a_ij = ω · leaky_relu(ζ_ij)                     per head
    α_ij = softmax_j(a_ij + 1e9 · (mask_ij - 1))
    h'_i = layer_norm(relu(Σ_j α_ij (W_val c_j + W_info e_ij) + W_skip c_i))

`B` (pre-attention bias) and `W_info` (edge information) are the paper's two options.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from mechgap.errors import InvalidInput
from mechgap.network.config import NetworkConfig
from mechgap.network.linear import LayerNorm, Linear


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

    def logits(
        self,
        c: Float[Array, "batch nodes features"],
        edges: Float[Array, "batch nodes nodes channels"],
        edge_encoder: Linear,
        graph: Float[Array, "batch hidden"],
    ) -> Float[Array, "batch heads receivers senders"]:
        """ω · leaky_relu(ζ), before the mask."""
        zeta = (
            self.sender(c)[:, None, :, :]
            + self.receiver(c)[:, :, None, :]
            + self.edge.after(edge_encoder)(edges)
            + self.meta(graph)[:, None, None, :]
        )
        if self.pre_attention_bias is not None:
            zeta = zeta + self._bias_for(c.shape[-2])[..., None]
        heads, head_size = self.attention.shape
        zeta = zeta.reshape(*zeta.shape[:-1], heads, head_size)
        scores = jnp.einsum("bijhf,hf->bhij", jax.nn.leaky_relu(zeta), self.attention)
        return scores + self.attention_bias[:, None, None]

    def update(
        self,
        attention: Float[Array, "batch heads receivers senders"],
        c: Float[Array, "batch nodes features"],
        edges: Float[Array, "batch nodes nodes channels"],
        edge_encoder: Linear,
    ) -> Float[Array, "batch nodes hidden"]:
        """The next hidden state, given who attends to whom."""
        heads, head_size = self.attention.shape
        values = self.value(c).reshape(*c.shape[:-1], heads, head_size)
        selected = jnp.einsum("bhij,bjhf->bihf", attention, values)
        if self.info is not None:
            # Attention weighs the few channels first; the encoder and W_info follow once.
            seen = jnp.einsum("bhij,bijc->bihc", attention, edges)
            total = jnp.einsum("bhij->bih", attention)[..., None]
            selected = (
                selected
                + seen @ (edge_encoder.weight @ self.info)
                + total * (edge_encoder.bias @ self.info)
            )
        hidden = jax.nn.relu(selected.reshape(*c.shape[:-1], -1) + self.skip(c))
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
