"""What a recipe must fulfil: each rule with the values that break it and what to do."""

from typing import TYPE_CHECKING

from mechgap.errors import InvalidInput, unknown
from mechgap.tasks.kinds import kinds_of
from mechgap.training.options import Forcing, LearningRate, Optimizer, Regularizer

if TYPE_CHECKING:
    from mechgap.training.recipe import Recipe

_AT_LEAST_ONE = ("train_steps", "batch_size", "eval_every", "test_every")
_NOT_NEGATIVE = (
    *("grad_clip_max_norm", "regularization_weight", "position_grid", "clock_shift"),
    *("curriculum_steps", "start_noise", "change_weight", "worst_weight"),
    *("window", "hidden_noise"),
    *("attention_supervision", "active_supervision", "state_supervision"),
    *("supervision_begins", "supervision_ends"),
)
_OPTIONS = {
    "regularizer": Regularizer,
    "optimizer": Optimizer,
    "teacher_forcing_schedule": Forcing,
    "learning_rate_schedule": LearningRate,
}


def check(recipe: "Recipe") -> None:
    """Raise `InvalidInput` for the first rule that a recipe breaks."""
    if recipe.posed.name != recipe.task:
        raise InvalidInput(
            f"the program of this recipe poses {recipe.posed.name}, and the task is {recipe.task}"
        )
    _check_values(recipe)
    for graphs in (recipe.train_graphs, recipe.test_graphs):
        kinds_of(graphs)
    if recipe.use_pre_att_bias and (len(recipe.train_lengths) > 1 or recipe.length_generalize):
        raise InvalidInput(
            "a pre-attention bias ties a network to one size: use_pre_att_bias needs one "
            "training length and length_generalize = false; got "
            f"train_lengths = {list(recipe.train_lengths)} and length_generalize = "
            f"{str(recipe.length_generalize).lower()}"
        )
    recipe.network_config  # noqa: B018  checks what is the network's
    if recipe.start_noise and not recipe.start_from:
        raise InvalidInput(f"start_noise is {recipe.start_noise} but start_from is not given")
    if recipe.curriculum_steps and not recipe.network_config.decodes_hints:
        raise InvalidInput("curriculum_steps needs hints to begin with; got hint_mode = none")
    _check_supervision(recipe)
    _check_signals(recipe)
    _check_window(recipe)
    if 0 < recipe.position_grid < max(recipe.train_lengths):
        raise InvalidInput(
            f"position_grid must have a place for each of {max(recipe.train_lengths)} nodes; got "
            f"{recipe.position_grid}"
        )
    hints = [f.name for f in recipe.posed.hints]
    for name in recipe.ignored:
        if name not in hints:
            raise unknown(f"hint of {recipe.task}", name, hints)
    if recipe.clock_shift and not recipe.posed.has_clock:
        raise InvalidInput(f"clock_shift needs a clock, and {recipe.task} has no such hint")


def _check_values(recipe: "Recipe") -> None:
    """What each field must be, whatever the others are."""
    if not recipe.train_lengths or min(recipe.train_lengths) < 1:
        raise InvalidInput(
            "train_lengths must hold at least one number of nodes, each at least 1; got "
            f"{list(recipe.train_lengths)}"
        )
    for name in _AT_LEAST_ONE:
        if getattr(recipe, name) < 1:
            raise InvalidInput(f"{name} must be at least 1; got {getattr(recipe, name)}")
    if recipe.test_every % recipe.eval_every:
        raise InvalidInput(
            f"test_every must be a multiple of eval_every; got {recipe.test_every} and "
            f"{recipe.eval_every}"
        )
    for name in ("learning_rate", "simplified_sharpness"):
        if not getattr(recipe, name) > 0:
            raise InvalidInput(f"{name} must be above 0; got {getattr(recipe, name)}")
    for name in _NOT_NEGATIVE:
        if not getattr(recipe, name) >= 0:
            raise InvalidInput(f"{name} must not be negative; got {getattr(recipe, name)}")
    for name, known in _OPTIONS.items():
        if getattr(recipe, name) not in set(known):
            raise unknown(name, getattr(recipe, name), [str(each) for each in known])


def _check_supervision(recipe: "Recipe") -> None:
    wanted = recipe.supervised_mechanism
    if not recipe.is_taught:
        told = {"supervised_mechanism": wanted and f"'{wanted}'"}
        told |= {n: getattr(recipe, n) for n in ("supervision_begins", "supervision_ends")}
        for name, value in told.items():
            if value:
                raise InvalidInput(
                    f"{name} is {value} but nothing is supervised. Give attention_supervision, "
                    "active_supervision or state_supervision a weight"
                )
        return
    known = {program.name: program for program in recipe.mechanisms}
    if not known:
        raise InvalidInput(f"there is no exact program of {recipe.task} to supervise by")
    if wanted and wanted not in known:
        raise unknown("mechanism", wanted, known)
    if recipe.mechanism is None:
        chosen = [known[wanted]] if wanted else list(known.values())
        needs = (
            f"{p.name} needs {p.selections} ({'gatv2_full' if p.sees_all else 'gatv2'})"
            for p in chosen
        )
        raise InvalidInput(
            "a network is supervised by a program that selects as often in a hint as it passes "
            f"messages; got nb_msg_passing_steps = {recipe.nb_msg_passing_steps} "
            f"({recipe.processor_type}), and {', '.join(needs)}"
        )
    begins, ends = recipe.supervision_begins, recipe.supervision_ends or recipe.train_steps
    if not begins < ends <= recipe.train_steps:
        raise InvalidInput(
            "supervision must begin before it ends, and end within train_steps; got "
            f"supervision_begins = {begins}, supervision_ends = {recipe.supervision_ends} and "
            f"train_steps = {recipe.train_steps}"
        )


def _check_signals(recipe: "Recipe") -> None:
    if recipe.supervised_signals and not recipe.state_supervision:
        raise InvalidInput(
            f"supervised_signals is '{recipe.supervised_signals}' but state_supervision is 0. "
            "Give it a weight"
        )
    if not recipe.state_supervision:
        return
    assert recipe.mechanism is not None
    there = recipe.mechanism.set_by_phases
    for name in recipe.signals:
        if name not in there:
            raise unknown(f"signal of {recipe.mechanism.name}", name, there)
    if not recipe.signals:
        raise InvalidInput(
            f"{recipe.mechanism.name} holds nothing that is no hint, so state_supervision has "
            "nothing to act on"
        )


def _check_window(recipe: "Recipe") -> None:
    if recipe.hidden_noise and not recipe.window:
        raise InvalidInput(
            f"hidden_noise is {recipe.hidden_noise} but traces are whole. Give a window"
        )
    smallest = min(recipe.train_lengths)
    steps = max(1, recipe.posed.max_hints(smallest) - 1)
    if recipe.window > steps:
        raise InvalidInput(
            f"a window must not be longer than a trace: {recipe.task} has at most {steps} steps "
            f"on {smallest} nodes; got window = {recipe.window}"
        )
