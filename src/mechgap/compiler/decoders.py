"""What is concluded, as predictions: classes, choices, pointers, and signals that are hints.

- A *class* is the softmax of what a node is, and, with more weight, of what it becomes.
- A *choice* is one softmax over all nodes: each flag weighs more than all later ones together with
  the position, which decides the rest.
- A *total* is its last value, which is a feature of the graph, and the flags that any node has:
  dm-clrs's decoder takes the largest of each over the nodes.
- A *pointer* is ``-sharp · |v_i - position_j|``, made of maxima as dm-clrs's decoder is. Of two
  values, the one that does not hold is moved below all positions, where a maximum misses it. A
  link to whoever has a flag is a smaller of two, also made of maxima.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from mechgap.compiler.affine import Affine, term
from mechgap.compiler.constants import POINTER_SHARE
from mechgap.compiler.domain import Domain
from mechgap.compiler.errors import Errors
from mechgap.compiler.layout import Layout
from mechgap.compiler.reading import Reading
from mechgap.errors import InvalidInput
from mechgap.network.decoders import (
    Decoder,
    GraphDecoder,
    NodeDecoder,
    PointerDecoder,
    SimplifiedPointerDecoder,
)
from mechgap.network.linear import Linear
from mechgap.programs.components import Component, Kind
from mechgap.programs.conclusions import Becomes, First, Grows, Linked
from mechgap.programs.expressions import Expression, Name, Side, Where, disjuncts

BELOW = -4.0
"""Where a value is moved that does not hold."""


def decoder(
    reading: Reading,
    domain: Domain,
    layout: Layout,
    errors: Errors,
    margin: float,
    component: Component,
    simplified_sharpness: float | None,
) -> Decoder:
    """The decoder that predicts a component at the end of the step.

    A simplified pointer decoder has a sharpness of its own, and takes one value.
    """
    link = None
    match reading.program.conclude.get(component.name):
        case Becomes() as change:
            logits = class_logits(reading, domain, component, change, errors, margin)
            return _linear(layout, logits, False)
        case First() as choice:
            logits = choice_logits(reading, domain, choice, errors, margin)
            return _linear(layout, [logits], True)
        case Grows() as growth:
            return _total(reading, layout, growth)
        case Linked(links, to, otherwise):
            values = _values(reading, otherwise)
            link = (_flag(reading, links), _flag(reading, to))
        case Where() as chosen:
            values = _values(reading, chosen)
        case _:
            own = Name(Side.SELF, component.name)
            if component.kind is Kind.BOOL:
                sure = Affine({}, -0.5) + _flag(reading, own)
                return _linear(layout, [4 * float(np.log(1 / domain.epsilon)) * sure], True)
            if component.kind is Kind.FLOAT:
                return _linear(layout, [_value(reading, own)], True)
            values = [_value(reading, own)]
    if simplified_sharpness is not None:
        (value,) = values
        position = Linear(jnp.asarray(_read(layout, value)[:, None]), jnp.full(1, value.constant))
        return SimplifiedPointerDecoder(position, simplified_sharpness)
    sharp = (margin + 1.0) / ((1 - 2 * POINTER_SHARE) * domain.position_gap)
    return _pointer(layout, reading.position, values, sharp, link)


def class_logits(
    reading: Reading,
    domain: Domain,
    component: Component,
    change: Becomes,
    errors: Errors,
    margin: float,
) -> list[Affine]:
    """What a node is weighs 1, and every condition 1 more than all before it together."""
    logits = {name: term(Side.SELF, name) for name in component.classes}
    weight = 2.0
    for name, condition in change.conditions.items():
        flags = [_flag(reading, part) for part in disjuncts(condition)]
        for flag in flags:
            logits[name] = logits[name] + weight * flag
        weight += weight * len(flags)
    lost = 2 * max(errors.form(form) for form in logits.values())
    _check(reading, domain, str(change), lost, 1.0)
    return [(margin / (1.0 - lost)) * form for form in logits.values()]


def choice_logits(
    reading: Reading, domain: Domain, choice: First, errors: Errors, margin: float
) -> Affine:
    """Flags by their rank, then the lowest position."""
    flags = [_flag(reading, flag) for flag in choice.flags]
    # In units of the position's weight c: what the flags weigh, and what they can be off by.
    apart = Affine({}, 0.0) - term(Side.SELF, reading.position)
    heavier = 1.0
    for flag in reversed(flags):
        apart = apart + (heavier + 1.0) * flag
        heavier += heavier + 1.0
    lost = 2 * errors.form(apart)
    _check(reading, domain, str(choice), lost, domain.position_gap)
    return (margin / (domain.position_gap - lost)) * apart


def _check(reading: Reading, domain: Domain, conclusion: str, lost: float, apart: float) -> None:
    """Refuse a decision that errors could turn over."""
    if lost >= apart / 2:
        raise InvalidInput(
            f"{reading.program.name} cannot be certified in {domain.dtype}: '{conclusion}' decides "
            f"between values that are {apart:.2g} apart and can be off by {lost:.2g}; at most half "
            "is allowed. Use float64, or positions further apart"
        )


def _total(reading: Reading, layout: Layout, growth: Grows) -> GraphDecoder:
    form = sum((growth.by * _flag(reading, flag) for flag in growth.flags), Affine())
    before = np.zeros((layout.hidden_size, 1))
    before[0] = 1.0
    return GraphDecoder(
        nodes=_linear(layout, [form], True).linear,
        graph=Linear(jnp.asarray(before), jnp.zeros(1)),
    )


def _flag(reading: Reading, expression: Expression) -> Affine:
    return reading.literal(expression, reading.phases)


def _value(reading: Reading, expression: Expression) -> Affine:
    assert isinstance(expression, Name)
    return reading.name(expression, reading.phases)


def _values(reading: Reading, expression: Expression) -> list[Affine]:
    """The values that a pointer can have; the one that does not hold is moved below all."""
    if not isinstance(expression, Where):
        return [_value(reading, expression)]
    holds = _flag(reading, expression.flag)
    return [
        _value(reading, expression.then) + (BELOW - 1.0) * (Affine({}, 1.0) - holds),
        _value(reading, expression.otherwise) + (BELOW - 1.0) * holds,
    ]


def _read(layout: Layout, form: Affine) -> np.ndarray:
    """A form as weights over ``[features | previous hidden | new hidden]``."""
    return layout.node_row(form, 2 * layout.hidden_size, 3 * layout.hidden_size)


def _linear(layout: Layout, forms: Sequence[Affine], squeeze: bool) -> NodeDecoder:
    weight = np.stack([_read(layout, form) for form in forms], axis=1)
    bias = np.array([form.constant for form in forms])
    return NodeDecoder(Linear(jnp.asarray(weight), jnp.asarray(bias)), squeeze)


def _pointer(
    layout: Layout,
    position: str,
    values: Sequence[Affine],
    sharp: float,
    link: tuple[Affine, Affine] | None = None,
) -> PointerDecoder:
    """``-2 sharp · max(v_i, p_j)`` for every value and ``sharp · p_j`` once more than values.

    A value below all positions contributes ``-2 sharp · p_j``, of which the last term takes away
    one each; what depends on i alone changes nothing. A link adds ``4 sharp · min(f_i, g_j)``, more
    than any value: ``min(f, g) = f + g - max(f, g)``.
    """
    hidden = layout.hidden_size
    pointing, pointing_bias = np.zeros((3 * hidden, hidden)), np.zeros(hidden)
    pointed, pointed_bias = np.zeros((3 * hidden, hidden)), np.zeros(hidden)
    score = np.zeros((hidden, 1))
    own = _read(layout, term(Side.SELF, position))
    for unit, value in enumerate(values):
        pointing[:, unit], pointing_bias[unit] = _read(layout, value), value.constant
        pointed[:, unit], score[unit] = own, -2 * sharp
    last = len(values)
    pointing_bias[last], pointed[:, last] = BELOW, own
    score[last] = sharp * (2 * len(values) - 1)
    if link is not None:
        links, to = link
        here, there = last + 1, last + 2
        pointing[:, here] = _read(layout, links)
        pointing_bias[here], pointing_bias[there] = links.constant, BELOW
        for unit, weight in ((here, -4 * sharp), (there, 4 * sharp)):
            pointed[:, unit], pointed_bias[unit] = _read(layout, to), to.constant
            score[unit] = weight

    def linear(weight: np.ndarray, bias: np.ndarray) -> Linear:
        return Linear(jnp.asarray(weight), jnp.asarray(bias))

    return PointerDecoder(
        pointing=linear(pointing, pointing_bias),
        pointed=linear(pointed, pointed_bias),
        edge=linear(np.zeros((hidden, hidden)), np.zeros(hidden)),
        score=linear(score, np.zeros(1)),
    )
