"""The shape of a network. Names and defaults are dm-clrs's, so that users know them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mechgap.errors import InvalidInput, unknown


class HintMode(StrEnum):
    """Whether hints are fed to the network, predicted by it, both or neither."""

    ENCODED_DECODED = "encoded_decoded"
    DECODED_ONLY = "decoded_only"
    NONE = "none"


class HintRepredMode(StrEnum):
    """How predicted hints are fed back: as probabilities or as decisions."""

    SOFT = "soft"
    HARD = "hard"
    HARD_ON_EVAL = "hard_on_eval"


class EncoderInit(StrEnum):
    """How encoders are initialised."""

    DEFAULT = "default"
    XAVIER_ON_SCALARS = "xavier_on_scalars"


class ProcessorType(StrEnum):
    """Which processor: GATv2 with attention along the graph's edges or between all pairs."""

    GATV2 = "gatv2"
    GATV2_FULL = "gatv2_full"


_KINDS: Mapping[str, type[StrEnum]] = {
    "hint_mode": HintMode,
    "hint_repred_mode": HintRepredMode,
    "encoder_init": EncoderInit,
    "processor_type": ProcessorType,
}


@dataclass(frozen=True)
class NetworkConfig:
    """Everything that decides a network's parameters and how they are used.

    Kinds may be given by name: ``NetworkConfig(hint_mode="none")``.
    """

    hidden_size: int = 128
    nb_heads: int = 1
    nb_msg_passing_steps: int = 1
    use_ln: bool = True
    dropout_prob: float = 0.0
    hint_mode: HintMode | str = HintMode.ENCODED_DECODED
    hint_repred_mode: HintRepredMode | str = HintRepredMode.SOFT
    hint_teacher_forcing: float = 0.0
    encoder_init: EncoderInit | str = EncoderInit.XAVIER_ON_SCALARS
    processor_type: ProcessorType | str = ProcessorType.GATV2
    use_lstm: bool = False
    use_edge_info: bool = False
    """The paper's `W_info`: attention-weighted edge features join the hidden state."""
    use_pre_att_bias: bool = False
    """The paper's `B`: a matrix added before the leaky ReLU; ties the network to one size."""
    pre_att_bias_nodes: int | None = None
    """The number of nodes that `B` is made for."""
    simplify_decoders: bool = False
    """The paper's pointer decoder -c·|v_i - pos_j|, with one learned v per node."""
    simplified_sharpness: float = 1e3
    """The constant c of the simplified pointer decoder."""

    def __post_init__(self):
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if value not in set(kind):
                raise unknown(name, str(value), [str(member) for member in kind])
            object.__setattr__(self, name, kind(value))
        for name in ("hidden_size", "nb_heads", "nb_msg_passing_steps"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be at least 1; got {getattr(self, name)}")
        if self.hidden_size % self.nb_heads:
            divisors = [k for k in range(1, self.hidden_size + 1) if self.hidden_size % k == 0]
            raise InvalidInput(
                f"nb_heads must divide hidden_size; got {self.nb_heads} and {self.hidden_size}. "
                f"Choose one of {', '.join(map(str, divisors))}"
            )
        if not 0 <= self.dropout_prob < 1:
            raise InvalidInput(f"dropout_prob must lie in [0, 1); got {self.dropout_prob}")
        if not 0 <= self.hint_teacher_forcing <= 1:
            raise InvalidInput(
                f"hint_teacher_forcing must lie in [0, 1]; got {self.hint_teacher_forcing}"
            )
        if self.use_lstm:
            raise InvalidInput(
                "use_lstm is not supported: attention would no longer be the only memory between "
                "steps. Leave it false"
            )
        if self.use_pre_att_bias and (self.pre_att_bias_nodes or 0) < 1:
            raise InvalidInput(
                "use_pre_att_bias needs the number of nodes that the bias is made for; got "
                f"pre_att_bias_nodes = {self.pre_att_bias_nodes}"
            )

    @property
    def head_size(self) -> int:
        """Hidden units per attention head."""
        return self.hidden_size // self.nb_heads

    @property
    def attends_to_all(self) -> bool:
        """Whether every node may attend to every other, whatever the graph's edges."""
        return self.processor_type is ProcessorType.GATV2_FULL

    @property
    def encodes_hints(self) -> bool:
        """Whether hints are fed to the network."""
        return self.hint_mode is HintMode.ENCODED_DECODED

    @property
    def decodes_hints(self) -> bool:
        """Whether the network predicts hints."""
        return self.hint_mode is not HintMode.NONE

    def hardens_hints(self, training: bool) -> bool:
        """Whether predicted hints are turned into decisions before they are fed back."""
        return self.hint_repred_mode is HintRepredMode.HARD or (
            self.hint_repred_mode is HintRepredMode.HARD_ON_EVAL and not training
        )
