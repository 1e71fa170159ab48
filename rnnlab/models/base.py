"""The base class of all models: parameters in one buffer, saved constructor arguments, a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Self, TypeAlias, TypeVar

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers.checks import as_array, as_generator, check_real
from rnnlab.layers.overlap import in_memory_of
from rnnlab.layers.recurrent.regularisation import Regularisation
from rnnlab.models.parts.combinations import check_combinations
from rnnlab.models.parts.initialisation import FanIns, initialise
from rnnlab.models.parts.losses import LOSSES
from rnnlab.models.parts.padding import Padded
from rnnlab.models.parts.reviewer import ReviewerOptions
from rnnlab.ops import Primitives, device_of, ops_for, ops_on
from rnnlab.options import NotNegative, Probability, Stored, as_plain, check_option, check_options
from rnnlab.parameters import Parameters, check_parameters, checked_shapes, distinct
from rnnlab.types import Array, Shapes

BatchSize = tuple[int, int]  # numbers of examples and of tokens
Loss = TypeVar("Loss", bound=Callable[..., Any])

# The constructors' argument ``regularisation``. Recipes and checkpoints store a table of its options.
RegularisationOptions: TypeAlias = Annotated[
    Mapping[str, Any] | Regularisation | None, Stored(Regularisation)
]

# Likewise ``reviewer``.
ReviewerChoice: TypeAlias = Annotated[Mapping[str, Any] | ReviewerOptions | None, Stored(ReviewerOptions)]


def checked_options(model: type, constructor: Mapping[str, Any]) -> dict[str, Any]:
    """A constructor's arguments except ``rng`` and ``device``, as values that JSON can represent.

    Parameters
    ----------
    model : type
        The class of the model.
    constructor : mapping of str to any
        The constructor's ``locals()``.

    Raises
    ------
    TypeError, ValueError
        If an argument does not match its annotation, contradicts another argument, or has no effect. The
        error names it.
    """
    options = {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in constructor.items()
        if name not in ("self", "__class__", "rng", "device")
    }
    regularisation = Regularisation.of(model.__name__, constructor["regularisation"])._asdict()
    options |= {"dtype": _dtype_name(constructor["dtype"]), "regularisation": regularisation}
    if "reviewer" in options:
        options["reviewer"] = ReviewerOptions.of(model.__name__, constructor["reviewer"])._asdict()
    cell_type = options.get("cell_type", "")
    if not isinstance(cell_type, str):
        raise InputError(
            f"{model.__name__}: cell_type is {cell_type!r}, expected a name: register it with "
            "rnnlab.layers.register_cell, or name it 'package.module:Name'"
        )
    check_options(model.__name__, model, options)
    check_combinations(model.__name__, options)
    return as_plain(options)


def announces_gradients(loss: Loss) -> Loss:
    """Mark a ``loss`` whose backward pass calls :meth:`rnnlab.parameters.Parameters.complete`.

    Several machines can then exchange complete gradients before the pass ends. A ``loss`` that a subclass
    overrides is not marked, because it may add to a gradient afterwards.
    """
    loss.announces_gradients = True  # type: ignore[attr-defined]
    return loss


class Model:
    """Base class of all models. ``_options`` is the result of :func:`checked_options` for the constructor.

    Attributes
    ----------
    params : Parameters
    last_terms : dict of str to float
        The losses that the last call of ``loss`` added to the cross-entropy, by the names of their weights
        and before weighting. For a part of a batch (``part_of``), its share of the batch's losses. On a GPU
        they are arrays ().
    """

    _options: dict[str, Any]
    _check_shapes: Callable[[Shapes], None] | None = None
    params: Parameters
    last_terms: Mapping[str, Any] = MappingProxyType({})

    def config(self) -> dict[str, Any]:
        """The constructor's arguments as JSON values. :meth:`from_config` builds a model of the same shape.

        The loss weights are the current ones. If a weight has been set to 0, the size of its part is
        included, so that the rebuilt model still has the part.
        """
        options = self._options | self.loss_weights
        for name, loss in LOSSES.items():
            if loss.part is None or not self._options.get(name) or options[name]:
                continue
            if options[loss.part.size] is None:
                options[loss.part.size] = getattr(self, loss.part.name).size
        return {name: dict(value) if isinstance(value, dict) else value for name, value in options.items()}

    @property
    def loss_weights(self) -> dict[str, float]:
        """The current weights of the losses. They are attributes and may be changed.

        The other options, such as ``detach_target``, are fixed when the model is built. To change one, build
        a model from the changed :meth:`config` and copy the parameters.
        """
        return {name: as_plain(getattr(self, name)) for name in LOSSES if name in self._options}

    def _weighted(self, name: str, term: Any, share: float) -> Any:
        """A loss times its weight and the batch's share; adds it to :attr:`last_terms`.

        Parameters
        ----------
        name : str
            The name of the weight.
        term : float, or an array () on the device
            A mean over the examples of a part of a batch.
        share : float
            The part's share of the examples of the batch.
        """
        self.last_terms = {**self.last_terms, name: term if share == 1 else share * term}
        return getattr(self, name) * share * term

    def _check_losses(self, function: str) -> None:
        """Raise ValueError if a loss weight has been set to an invalid value."""
        model = type(self).__name__
        for name in LOSSES:
            weight = getattr(self, name, 0.0)
            if name in self._options:
                allowed = Probability if name == "label_smoothing" else NotNegative
                check_option(f"{model}.{function}", name, allowed, weight)
            elif weight:
                raise InputError(
                    f"{model}.{function}: {name} is {weight!r}, but a {model} has no such loss, only "
                    f"{', '.join(self.loss_weights)}"
                )

    def _part_of(self, loss: str) -> Any:
        """The part of the model that computes a loss.

        Raises
        ------
        ValueError
            If the model has no such part: the loss weight was 0 when it was built, and was changed later.
        """
        part = LOSSES[loss].part
        assert part is not None
        if (found := getattr(self, part.name)) is None:
            raise InputError(
                f"{type(self).__name__}: {loss} is {getattr(self, loss)}, but the model was made without the "
                f"part that computes this loss: give it {part.size}"
            )
        return found

    @classmethod
    def from_config(
        cls,
        config: Mapping[str, Any],
        *,
        rng: np.random.Generator | int = 0,
        check_shapes: Callable[[Shapes], None] | None = None,
    ) -> Self:
        """A model with newly initialised parameters from the result of :meth:`config`.

        Parameters
        ----------
        config : mapping
        rng : numpy Generator or seed
        check_shapes : callable, optional
            Called with the shapes of the parameters before they are allocated. It may raise an error. The
            parameters are then not initialised: the caller overwrites all of them.
        """
        model = cls.__new__(cls)
        if check_shapes is not None:
            model._check_shapes = check_shapes
        try:
            model.__init__(**config, rng=rng)  # type: ignore[misc]
        finally:
            vars(model).pop("_check_shapes", None)  # it may keep arrays alive
        return model

    def extra_shapes(self) -> Shapes:
        """The parameters that a subclass adds, none by default.

        The constructor calls it before the parameters are made. Weights, which are recognised by their names,
        are initialised as the options say, others with zeros.
        """
        return {}

    def _initialise(
        self, shapes: Shapes, rng: np.random.Generator | int, fan_ins: FanIns = MappingProxyType({})
    ) -> None:
        """Make :attr:`params`, with the dtype and the initialisation of the options."""
        options, check = self._options, self._check_shapes
        name = type(self).__name__
        extra = checked_shapes(f"{name}.extra_shapes", self.extra_shapes())
        shapes = distinct(name, shapes, extra, place="extra_shapes")
        if check is not None:
            check(shapes)
        self.params = Parameters(shapes, options["dtype"])
        if check is None:
            initialise(
                self.params,
                options["initialisation"],
                scale=options["init_scale"],
                rng=as_generator(name, rng),
                fan_ins=fan_ins,
            )

    def to(self, device: str) -> Self:
        """Move the parameters to a device, in place: "cpu", "gpu" (the first), or "gpu:N".

        The model computes on the device of its parameters. Inputs may always be NumPy arrays; tokens,
        labels and lengths must be.

        Raises
        ------
        ValueError, ImportError
            If the name is not one of these, or the device does not exist.
        """
        ops = ops_on(device)
        here = ops_for(self.params.flat)
        if ops is not here or device_of(self.params.flat) != device_of(ops.empty(0)):
            self.params = self.params.on(lambda flat: ops.asarray(here.asnumpy(flat)))
        return self

    def prefetch(self, batch: tuple[Any, ...]) -> tuple[Any, ...]:
        """Copy the floating-point arrays of a batch to the model's device, in its dtype.

        :meth:`loss` does the same. Calling this earlier, in another thread, overlaps the copy with other
        work.
        """
        return tuple(map(self._prefetch_entry, batch))

    def _prefetch_entry(self, entry: Any) -> Any:
        if isinstance(entry, tuple):
            return self.prefetch(entry)
        dtype = getattr(entry, "dtype", None)
        floats = isinstance(dtype, np.dtype) and dtype.kind == "f"  # loss refuses arrays of other libraries
        return self._ops.prefetch(entry, self.params.flat) if floats else entry

    def prefetch_padded(self, batch: Padded) -> Padded:
        """Copy all arrays of a padded batch to the model's device."""
        integers = self._ops.empty(0, np.int64)
        return batch.on(
            lambda x: self._ops.prefetch(x, self.params.flat if x.dtype.kind == "f" else integers)
        )

    @property
    def device(self) -> str:
        """The device of the parameters: "cpu" or "gpu:N"."""
        return device_of(self.params.flat)

    @property
    def _ops(self) -> Primitives:
        """The primitives for arrays of the parameters' library."""
        return ops_for(self.params.flat)

    def _floats(self, argument: str, array: Any) -> Array:
        """Real numbers as an array of the model's device and dtype. Errors begin with ``argument``."""
        array = array if hasattr(array, "dtype") else as_array(argument, array)
        check_real(argument, array)
        return self._ops.asarray(array, dtype=self.dtype)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the parameters and of all arithmetic."""
        return self.params.dtype

    def _gradients_workspace(self, grads: Parameters | None, part_of: BatchSize | None = None) -> Parameters:
        """The arrays to add gradients into: ``grads``, cleared if ``part_of`` is None, or new ones."""
        if grads is None:
            return self.params.zeros_like()
        check_parameters(f"{type(self).__name__}.loss", "grads", grads)
        if grads.shapes != self.params.shapes or grads.dtype != self.params.dtype:
            raise InputError(
                f"{type(self).__name__}.loss: grads has parameters of other shapes or of dtype {grads.dtype}"
                ", expected those of this model, params.zeros_like()"
            )
        if in_memory_of(grads.flat, self.params.flat):
            raise InputError(
                f"{type(self).__name__}.loss: grads are in the memory of the parameters, expected their own"
            )
        if part_of is None:
            self._ops.clear(grads.flat)
        return grads


def _dtype_name(dtype: Any) -> Any:
    """The name of a dtype; what is none stays as it is, for the error."""
    try:
        return dtype if dtype is None else np.dtype(dtype).name
    except TypeError:
        return dtype


def averaging_size(function: str, examples: int, tokens: int, part_of: BatchSize | None) -> BatchSize:
    """The numbers of examples and tokens that losses are averaged over.

    They are the batch's own, or ``part_of`` if the batch is a part of a larger one.

    Raises
    ------
    ValueError
        If ``part_of`` is smaller than the batch.
    TypeError
        If it is not a pair of integers.
    """
    if part_of is None:
        return examples, tokens
    pair = isinstance(part_of, (tuple, list)) and len(part_of) == 2
    if not pair or not all(isinstance(number, (int, np.integer)) for number in part_of):
        raise InputTypeError(
            f"{function}: part_of is {part_of!r}, expected two integers, the examples and the tokens of the "
            "batch"
        )
    if part_of[0] < examples or part_of[1] < tokens:
        raise InputError(
            f"{function}: part_of is {part_of}, expected at least the part's own {examples} examples "
            f"and {tokens} tokens"
        )
    return int(part_of[0]), int(part_of[1])  # a NumPy integer would promote float32 to float64
