"""What to compile for: which options the architecture has."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mechgap.errors import unknown
from mechgap.network.config import NetworkConfig


@dataclass(frozen=True)
class Target:
    """An architecture that programs compile to."""

    name: str
    summary: str
    edge_information: bool
    pre_attention_bias: bool
    layer_norm: bool
    full_attention: bool = False
    """Whether nodes attend to all nodes, and not only along edges."""

    def config(
        self, hidden_size: int, nodes: int, simplify_decoders: bool = False
    ) -> NetworkConfig:
        """The network's shape; `nodes` matters only where there is a bias."""
        return NetworkConfig(
            hidden_size=hidden_size,
            use_ln=self.layer_norm,
            processor_type="gatv2_full" if self.full_attention else "gatv2",
            use_edge_info=self.edge_information,
            use_pre_att_bias=self.pre_attention_bias,
            pre_att_bias_nodes=nodes if self.pre_attention_bias else None,
            simplify_decoders=simplify_decoders,
        )

    @staticmethod
    def of(config: NetworkConfig) -> "Target":
        """The target of a network's architecture: one of the named ones if it is one of them."""
        full = config.processor_type == "gatv2_full"
        options = (config.use_edge_info, config.use_pre_att_bias, config.use_ln, full)
        for target in TARGETS.values():
            if options == target.options:
                return target
        words = {"full": full, "edges": options[0], "bias": options[1], "ln": options[2]}
        name = "-".join(word for word, has in words.items() if has) or "stock"
        return Target(name, "the architecture of a recipe", *options)

    @property
    def options(self) -> tuple[bool, bool, bool, bool]:
        """Edge information, bias, layer norm, attention to all."""
        return (self.edge_information, self.pre_attention_bias, self.layer_norm,
                self.full_attention)  # fmt: skip


TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        target.name: target
        for target in (
            Target("paper", "edge information and bias, one size", True, True, False),
            Target("general", "edge information, any size", True, False, False),
            Target("stock", "dm-clrs's GATv2 without layer norm", False, False, False),
            Target("stock-ln", "dm-clrs's GATv2 as it is", False, False, True),
            Target("full", "attention to all nodes, edge information", True, False, False, True),
        )
    }
)


def get_target(name: str) -> Target:
    """The target of that name, or an error that names the nearest one."""
    if name not in TARGETS:
        raise unknown("target", name, TARGETS)
    return TARGETS[name]
