"""What some fields of a recipe can be."""

from enum import StrEnum


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
