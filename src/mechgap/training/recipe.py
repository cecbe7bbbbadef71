"""How a network is trained: every hyperparameter of the paper, under the names of dm-clrs.

A recipe is data: defaults, the paper's variants as presets, TOML files and overrides on top.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mechgap.errors import InvalidInput, unknown
from mechgap.network.config import NetworkConfig
from mechgap.programs.data import program_data, program_of
from mechgap.programs.library import mechanisms
from mechgap.programs.load import find_task
from mechgap.programs.posing import posed
from mechgap.programs.program import Program
from mechgap.tasks.kinds import ER, KINDS, kinds_of
from mechgap.tasks.specs import Task, get_task


class Regularizer(StrEnum):
    """What is added to the loss, times `regularization_weight`."""

    L2 = "l2"
    """The sum of squares of all weight matrices."""
    L1 = "l1"
    """The sum of their absolute values."""


class Optimizer(StrEnum):
    """Who turns gradients into steps."""

    ADAM = "adam"
    """dm-clrs's."""
    MUON = "muon"
    """Moves all directions of a matrix equally far, those with small gradients too. What is no
    matrix is left to Adam, at a fifth of the learning rate."""


class LearningRate(StrEnum):
    """How the learning rate changes in training."""

    CONSTANT = "constant"
    COSINE = "cosine"
    """Half a cosine from `learning_rate` to a hundredth of it at the last step."""


class Forcing(StrEnum):
    """How the probability of the true hint changes in training."""

    CONSTANT = "constant"
    LINEAR = "linear"
    """From `hint_teacher_forcing` to 0 at the last step."""


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
    change_weight: float = _about(
        0.0, "Weight of one more loss on hints (but numbers) where they change."
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

    def __post_init__(self):
        if self.posed.name != self.task:
            raise InvalidInput(
                f"the program of this recipe poses {self.posed.name}, and the task is {self.task}"
            )
        object.__setattr__(self, "train_lengths", tuple(self.train_lengths))
        if not self.train_lengths or min(self.train_lengths) < 1:
            raise InvalidInput(
                "train_lengths must hold at least one number of nodes, each at least 1; got "
                f"{list(self.train_lengths)}"
            )
        for graphs in (self.train_graphs, self.test_graphs):
            kinds_of(graphs)
        for name in ("train_steps", "batch_size", "eval_every", "test_every"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be at least 1; got {getattr(self, name)}")
        if self.test_every % self.eval_every:
            raise InvalidInput(
                f"test_every must be a multiple of eval_every; got {self.test_every} and "
                f"{self.eval_every}"
            )
        if not self.learning_rate > 0:
            raise InvalidInput(f"learning_rate must be above 0; got {self.learning_rate}")
        for name in (
            *("grad_clip_max_norm", "regularization_weight", "position_grid", "clock_shift"),
            *("curriculum_steps", "start_noise", "change_weight", "window", "hidden_noise"),
            *("attention_supervision", "active_supervision", "state_supervision"),
        ):
            if not getattr(self, name) >= 0:
                raise InvalidInput(f"{name} must not be negative; got {getattr(self, name)}")
        if self.regularizer not in set(Regularizer):
            raise unknown("regularizer", self.regularizer, [str(known) for known in Regularizer])
        if self.use_pre_att_bias and (len(self.train_lengths) > 1 or self.length_generalize):
            raise InvalidInput(
                "a pre-attention bias ties a network to one size: use_pre_att_bias needs one "
                "training length and length_generalize = false; got "
                f"train_lengths = {list(self.train_lengths)} and length_generalize = "
                f"{str(self.length_generalize).lower()}"
            )
        self.network_config  # noqa: B018  checks what is the network's
        if self.start_noise and not self.start_from:
            raise InvalidInput(f"start_noise is {self.start_noise} but start_from is not given")
        if self.curriculum_steps and not self.network_config.decodes_hints:
            raise InvalidInput("curriculum_steps needs hints to begin with; got hint_mode = none")
        if self.is_taught:
            self._check_supervision()
        elif self.supervised_mechanism:
            raise InvalidInput(
                f"supervised_mechanism is '{self.supervised_mechanism}' but nothing is supervised. "
                "Give attention_supervision, active_supervision or state_supervision a weight"
            )
        self._check_signals()
        self._check_window()
        if 0 < self.position_grid < max(self.train_lengths):
            raise InvalidInput(
                f"position_grid must have a place for each of {max(self.train_lengths)} nodes; got "
                f"{self.position_grid}"
            )
        hints = [f.name for f in self.posed.hints]
        for name in self.ignored:
            if name not in hints:
                raise unknown(f"hint of {self.task}", name, hints)
        if self.clock_shift and not self.posed.has_clock:
            raise InvalidInput(f"clock_shift needs a clock, and {self.task} has no such hint")

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

    def _check_supervision(self) -> None:
        known = {program.name: program for program in self.mechanisms}
        wanted = self.supervised_mechanism
        if not known:
            raise InvalidInput(f"there is no exact program of {self.task} to supervise by")
        if wanted and wanted not in known:
            raise unknown("mechanism", wanted, known)
        if self.mechanism is None:
            chosen = [known[wanted]] if wanted else list(known.values())
            needs = (
                f"{p.name} needs {p.selections} ({'gatv2_full' if p.sees_all else 'gatv2'})"
                for p in chosen
            )
            raise InvalidInput(
                "a network is supervised by a program that selects as often in a hint as it passes "
                f"messages; got nb_msg_passing_steps = {self.nb_msg_passing_steps} "
                f"({self.processor_type}), and {', '.join(needs)}"
            )

    def _check_signals(self) -> None:
        if self.supervised_signals and not self.state_supervision:
            raise InvalidInput(
                f"supervised_signals is '{self.supervised_signals}' but state_supervision is 0. "
                "Give it a weight"
            )
        if not self.state_supervision:
            return
        assert self.mechanism is not None
        there = self.mechanism.set_by_phases
        for name in self.signals:
            if name not in there:
                raise unknown(f"signal of {self.mechanism.name}", name, there)
        if not self.signals:
            raise InvalidInput(
                f"{self.mechanism.name} holds nothing that is no hint, so state_supervision has "
                "nothing to act on"
            )

    def _check_window(self) -> None:
        for name, known in (
            ("optimizer", Optimizer),
            ("teacher_forcing_schedule", Forcing),
            ("learning_rate_schedule", LearningRate),
        ):
            if getattr(self, name) not in set(known):
                raise unknown(name, getattr(self, name), [str(each) for each in known])
        if self.hidden_noise and not self.window:
            raise InvalidInput(
                f"hidden_noise is {self.hidden_noise} but traces are whole. Give a window"
            )
        smallest = min(self.train_lengths)
        steps = max(1, self.posed.max_hints(smallest) - 1)
        if self.window > steps:
            raise InvalidInput(
                f"a window must not be longer than a trace: {self.task} has at most {steps} steps "
                f"on {smallest} nodes; got window = {self.window}"
            )

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
            or self.ignored_hints
            or self.teacher_forcing_schedule != Forcing.CONSTANT
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


# The paper's settings have simplify_decoders, which it does not define. With our reading of it
# networks do not come near the printed numbers (docs/replication.md), with dm-clrs's decoders they
# do, so the ablations have these.
_ABLATION = {"train_lengths": (16,), "length_generalize": False}
# The paper's table of edge information has maxima that only 64 nodes can give (k / 2048).
_EDGE_INFO = {"train_lengths": (16,)}
# Long traces in windows, on graphs of up to 32 nodes whose positions lie closer together than those
# of 64 nodes.
_WINDOWS = {
    "train_steps": 16_000,
    "train_lengths": (16, 32),
    "train_graphs": "er+er-sparse",
    "position_grid": 128,
    "batch_size": 16,
    "window": 4,
    "hint_teacher_forcing": 0.5,
    "change_weight": 1.0,
    "optimizer": "muon",
    "learning_rate": 4e-3,
    "learning_rate_schedule": "cosine",
    "eval_every": 1000,
    "test_every": 16_000,
    "hidden_size": 64,
}
PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "default": {},
        "trace_ablation": {"hint_mode": "none"},
        "minimal": {"hidden_size": 4},
        "regularisation_1e-3": {"regularization": True, "regularization_weight": 1e-3},
        "regularisation_1e-4": {"regularization": True, "regularization_weight": 1e-4},
        "grokking": {"train_steps": 50_000, "learning_rate": 5e-5},
        "ablation_default": _ABLATION,
        "ablation_simplified": {**_ABLATION, "simplify_decoders": True},
        "edge_info_default": _EDGE_INFO,
        "edge_info": {**_EDGE_INFO, "use_edge_info": True},
        "edge_info_mixed": {"use_edge_info": True},
        "ablation_pre_att_bias": {**_ABLATION, "use_pre_att_bias": True},
        "ablation_both": {**_ABLATION, "use_edge_info": True, "use_pre_att_bias": True},
        "minimal_pre_att_bias": {**_ABLATION, "hidden_size": 4, "use_pre_att_bias": True},
        "minimal_both": {
            **_ABLATION,
            "hidden_size": 4,
            "use_edge_info": True,
            "use_pre_att_bias": True,
        },
        "curriculum": {"curriculum_steps": 5_000},
        "supervised": {"attention_supervision": 1.0},
        "windows": _WINDOWS,
    }
)
"""The paper's variants, and our own: traces first, attention as a target, long traces in windows.
Each overrides some of the defaults."""


def make_recipe(
    task: str,
    preset: str = "default",
    file: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Recipe:
    """A recipe: the defaults, then a preset, then a TOML file, then overrides.

    `task` is a task's name, a program's of the library, or ``file.py:name``.

    >>> make_recipe("bfs", "minimal", overrides={"train_steps": 100}).hidden_size
    4
    """
    if preset not in PRESETS:
        raise unknown("preset", preset, list(PRESETS))
    values = {**PRESETS[preset], **(_read(file) if file else {}), **(overrides or {})}
    found, program = find_task(task)
    text = "" if program is None else json.dumps(program_data(program), ensure_ascii=False)
    return recipe_from(values, task=found.name, program=text)


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


def recipe_from(values: Mapping[str, Any], **more: Any) -> Recipe:
    """A recipe from plain values; unknown names and wrong kinds are errors."""
    known = {f.name: f for f in fields(Recipe)}
    checked: dict[str, Any] = {}
    for name, value in {**values, **more}.items():
        if name not in known:
            raise unknown("hyperparameter", name, list(known))
        checked[name] = _checked(name, known[name].default, value)
    return replace(Recipe(), **checked)


def _checked(name: str, default: Any, value: Any) -> Any:
    """A value of the kind that the field has."""
    if isinstance(default, tuple):
        right = isinstance(value, list | tuple) and all(type(v) is int for v in value)
        kind, value = "a list of whole numbers", tuple(value) if right else value
    elif isinstance(default, bool):
        right, kind = isinstance(value, bool), "true or false"
    elif isinstance(default, int):
        right, kind = type(value) is int, "a whole number"
    elif isinstance(default, float):
        right, kind = type(value) in (int, float), "a number"
        value = float(value) if right else value
    else:
        right, kind = isinstance(value, str), "text"
        value = str(value) if right else value
    if not right:
        raise InvalidInput(f"{name} must be {kind}; got {value!r}")
    return value


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except FileNotFoundError as error:
        raise InvalidInput(f"there is no file '{file}'") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"'{file}' cannot be read as TOML: {error}") from error


def to_toml(recipe: Recipe) -> str:
    """The recipe as a TOML file, one field a line with what it means."""

    def text(value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str):
            return json.dumps(value)  # a basic string of TOML has the same escapes
        return str(value)

    lines = [f"{f.name} = {text(recipe.data()[f.name])}  # {f.metadata['help']}\n" for f in
             fields(recipe)]  # fmt: skip
    return "".join(lines)
