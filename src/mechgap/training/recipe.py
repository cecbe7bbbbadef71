"""How a network is trained: every hyperparameter of the paper, under the names of dm-clrs.

A recipe is data. Presets, files and overrides are in `presets`, the rules in `checks`.
"""

import json
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from typing import Any

from mechgap.errors import InvalidInput
from mechgap.network.config import NetworkConfig
from mechgap.programs.data import program_of
from mechgap.programs.library import mechanisms
from mechgap.programs.posing import posed
from mechgap.programs.program import Program
from mechgap.tasks.kinds import ER, KINDS
from mechgap.tasks.specs import Task, get_task
from mechgap.training.checks import check
from mechgap.training.options import Forcing, LearningRate, Optimizer, Regularizer


def _about(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Recipe:
    """One way to train. The defaults are the paper's."""

    task: str = _about("bfs", "The task; see `mechgap tasks`.")
    program: str = _about("", "The program that poses the task, as data; empty for CLRS's tasks.")
    train_steps: int = _about(10_000, "Batches to train on.")
    train_lengths: tuple[int, ...] = _about((4, 7, 11, 13, 16), "Graph sizes, cycled per batch.")
    train_graphs: str = _about(
        ER, f"Kind of training and validation graphs: {', '.join(KINDS)}, or several, tree+grid."
    )
    test_graphs: str = _about(ER, "Kind of test graphs; er for the official ones.")
    batch_size: int = _about(32, "Graphs per batch.")
    optimizer: str = _about(Optimizer.ADAM, "adam, or muon.")
    learning_rate: float = _about(1e-4, "The optimiser's; dm-clrs's own default is 1e-3.")
    learning_rate_schedule: str = _about(
        LearningRate.CONSTANT, "constant, or cosine: falls to a hundredth at the last step."
    )
    grad_clip_max_norm: float = _about(1.0, "Largest norm of a gradient; 0 for no clipping.")
    eval_every: int = _about(50, "Steps between validations.")
    test_every: int = _about(500, "Steps between tests, which are recorded and never selected by.")
    latest_best: bool = _about(
        False, "Of networks that validate equally well keep the latest; dm-clrs keeps the first."
    )
    random_pos: bool = _about(True, "Random node positions in training and validation.")
    position_grid: int = _about(
        0, "Training graphs have positions i/this, as larger graphs do; 0 for none."
    )
    clock_shift: float = _about(0.0, "Clocks of training traces begin at a random time up to this.")
    length_generalize: bool = _about(
        True, "Test on 32 graphs of 64 nodes, as CLRS does; otherwise on 64 of the training length."
    )
    regularization: bool = _about(False, "Add a penalty on the weights to the loss.")
    regularization_weight: float = _about(1e-4, "The penalty's weight.")
    regularizer: str = _about(
        Regularizer.L2,
        "l2 or l1. The paper does not say which; l2 is what 'regularised' usually means.",
    )
    curriculum_steps: int = _about(
        0, "For so many steps hints are learned alone; then outputs too."
    )
    attention_supervision: float = _about(
        0.0, "Weight of a loss on attention against an exact mechanism's; 0 for none."
    )
    active_supervision: float = _about(
        0.0, "The same for the nodes alone for whom anyone passes the mechanism's mask."
    )
    state_supervision: float = _about(
        0.0, "Weight of a loss on linear read-outs of the mechanism's signals that are no hints."
    )
    supervised_signals: str = _about(
        "", "Which signals, such as found,target; all that the mechanism has if not given."
    )
    supervised_mechanism: str = _about(
        "", "The program that supervises; the task's own if not given."
    )
    supervision_begins: int = _about(0, "Before this step nothing is supervised.")
    supervision_ends: int = _about(
        0, "From this step on nothing is supervised any more; 0 for never."
    )
    change_weight: float = _about(
        0.0, "Weight of one more loss on hints (but numbers) where they change."
    )
    worst_weight: float = _about(
        0.0, "Weight of one more error of attention, signals and hints: of each step's worst node."
    )
    ignored_hints: str = _about("", "Hints whose error does not count, such as d,f,v.")
    window: int = _about(
        0, "Hint steps that are learned at once, the hidden state carried on; 0 for whole traces."
    )
    hidden_noise: float = _about(
        0.0, "Deviation of noise on the hidden state that is carried into a window."
    )
    start_from: str = _about(
        "", "Compiled parameters to start from, PROGRAM:TARGET; random ones if not given."
    )
    start_noise: float = _about(
        0.0, "Noise on compiled parameters, as a share of each filter's norm."
    )
    freeze_processor: bool = _about(False, "Train encoders and decoders only.")
    enforce_permutations: bool = _about(True, "Recorded; these tasks have no permutations.")
    enforce_pred_as_input: bool = _about(True, "Recorded; these tasks have no such hints.")
    hidden_size: int = _about(128, "Hidden units.")
    nb_heads: int = _about(1, "Attention heads.")
    nb_msg_passing_steps: int = _about(1, "Message-passing steps per hint.")
    use_ln: bool = _about(True, "Layer norm.")
    use_lstm: bool = _about(False, "Recorded; not supported.")
    dropout_prob: float = _about(0.0, "Dropout.")
    hint_mode: str = _about("encoded_decoded", "encoded_decoded, decoded_only or none.")
    hint_repred_mode: str = _about("soft", "soft, hard or hard_on_eval.")
    hint_teacher_forcing: float = _about(0.0, "Probability of the true hint in training.")
    teacher_forcing_schedule: str = _about(
        Forcing.CONSTANT, "constant, or linear: falls to 0 at the last step."
    )
    encoder_init: str = _about("xavier_on_scalars", "xavier_on_scalars or default.")
    processor_type: str = _about("gatv2", "gatv2, or gatv2_full: all pairs attend.")
    use_edge_info: bool = _about(False, "The paper's W_info.")
    use_pre_att_bias: bool = _about(False, "The paper's B; needs one training length.")
    simplify_decoders: bool = _about(False, "The paper's pointer decoder.")
    simplified_sharpness: float = _about(1000.0, "That decoder's c.")

    def __post_init__(self):
        object.__setattr__(self, "train_lengths", tuple(self.train_lengths))
        check(self)

    @property
    def own_program(self) -> Program | None:
        """The user's program, if the recipe has one."""
        return _program(self.program) if self.program else None

    @property
    def posed(self) -> Task:
        """The task: inputs, hints and outputs, and who traces them."""
        return get_task(self.task) if self.own_program is None else posed(self.own_program)

    @property
    def mechanisms(self) -> tuple[Program, ...]:
        """The exact mechanisms that attention is compared with; the user's own comes first."""
        known = mechanisms(self.posed)
        if self.own_program is None:
            return known
        return (self.own_program, *(p for p in known if p != self.own_program))

    @property
    def is_taught(self) -> bool:
        """Whether an exact mechanism teaches."""
        return any((self.attention_supervision, self.active_supervision, self.state_supervision))

    @property
    def mechanism(self) -> Program | None:
        """The program that teaches."""
        if not self.is_taught:
            return None
        return next((p for p in self.mechanisms if self._can_be_taught(p)), None)

    def _can_be_taught(self, program: Program) -> bool:
        return (
            self.supervised_mechanism in ("", program.name)
            and program.selections == self.nb_msg_passing_steps
            and program.sees_all == self.network_config.attends_to_all
        )

    @property
    def signals(self) -> tuple[str, ...]:
        """What is supervised of that program's state."""
        if not self.state_supervision or self.mechanism is None:
            return ()
        return _names(self.supervised_signals) or self.mechanism.signals

    @property
    def ignored(self) -> tuple[str, ...]:
        """The hints whose error does not count."""
        return _names(self.ignored_hints)

    @property
    def has_plain_loss(self) -> bool:
        """Whether the loss is dm-clrs's at every step."""
        return not (
            self.is_taught
            or self.curriculum_steps
            or self.change_weight
            or self.worst_weight
            or self.ignored_hints
            or self.teacher_forcing_schedule != Forcing.CONSTANT
        )

    def is_taught_at(self, step: Any) -> Any:
        """Whether an exact mechanism teaches at a step, which may be an array."""
        return (step >= self.supervision_begins) & (
            step < (self.supervision_ends or self.train_steps)
        )

    @property
    def network_config(self) -> NetworkConfig:
        """The shape of the network."""
        shared = {f.name for f in fields(NetworkConfig)} & {f.name for f in fields(self)}
        bias_nodes = self.train_lengths[0] if self.use_pre_att_bias else None
        return NetworkConfig(
            **{name: getattr(self, name) for name in shared}, pre_att_bias_nodes=bias_nodes
        )

    @property
    def validation_nodes(self) -> int:
        """Validation graphs are as large as the largest training graphs, as in dm-clrs."""
        return max(self.train_lengths)

    def data(self) -> dict[str, Any]:
        """The recipe as plain values."""
        return {**asdict(self), "train_lengths": list(self.train_lengths)}

    def differences(self, other: "Recipe") -> list[str]:
        """The fields that are not the same, as ``name: ours → theirs``."""
        mine, theirs = self.data(), other.data()
        if self.program and other.program:  # part by part
            ours, others = json.loads(mine.pop("program")), json.loads(theirs.pop("program"))
            mine |= {f"program's {part}": value for part, value in ours.items()}
            theirs |= {f"program's {part}": value for part, value in others.items()}
        return [f"{k}: {mine[k]} → {theirs[k]}" for k in mine if mine[k] != theirs[k]]


def _names(text: str) -> tuple[str, ...]:
    """Names with commas between them.

    >>> _names("found, target")
    ('found', 'target')
    """
    return tuple(name.strip() for name in text.split(",") if name.strip())


@cache
def _program(text: str) -> Program:
    try:
        return program_of(json.loads(text))
    except ValueError as error:
        raise InvalidInput(f"a recipe's program is damaged: {error}") from error
