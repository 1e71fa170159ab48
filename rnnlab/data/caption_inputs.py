"""The inputs of a captioning model without its training data, from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from rnnlab.data.photographs.encoder import ImageEncoder, choose_encoding
from rnnlab.data.photographs.encoding import ImageEncoding, recorded_encodings
from rnnlab.data.photographs.graphs import Graph
from rnnlab.data.projection import read_projection
from rnnlab.data.scaling import FeatureScaling
from rnnlab.data.vocabulary import Vocabulary
from rnnlab.errors import InputError, MissingDataError
from rnnlab.reading import PathLike, check_regular, mismatch


@dataclass(frozen=True)
class CaptionInputs:
    """The preprocessing of new images for a captioning model, and the vocabulary of its captions.

    Attributes
    ----------
    vocabulary : Vocabulary
    scaling : FeatureScaling
    image_dir : Path, optional
        The folder of the pictures.
    encodings : mapping of str to ImageEncoding
        How the features of each field of ``scaling`` were made, if it is known.
    reads_grid : bool
        Whether ``features`` are vectors of regions.
    """

    vocabulary: Vocabulary
    scaling: FeatureScaling
    image_dir: Path | None = None
    encodings: Mapping[str, ImageEncoding] = field(default_factory=dict)
    reads_grid: bool = False

    @classmethod
    def from_saved(
        cls, vocabulary: list[str], preprocessing: Mapping[str, Any], *, reads_grid: bool = False
    ) -> Self:
        """From the fields ``vocabulary`` and ``preprocessing`` of a checkpoint."""
        scaling = FeatureScaling.from_arrays(preprocessing)
        encodings = {
            name: found
            for name in scaling
            if (found := ImageEncoding.from_arrays(preprocessing, name)) is not None
        }
        return cls(Vocabulary(vocabulary), scaling, encodings=encodings, reads_grid=reads_grid)

    @property
    def num_global_features(self) -> int | None:
        """G, the size of a global vector of an image; None if the model reads none."""
        scaling = self.scaling.get("global_features")
        return None if scaling is None else scaling.mean.size

    @property
    def reads(self) -> str:
        """The features that the model reads, in words."""
        kind = "a grid of vectors" if self.reads_grid else "one vector"
        size, beside = self.scaling["features"].mean.size, ""
        if self.num_global_features is not None:
            beside = f" and a vector of {self.num_global_features} numbers"
        return f"{kind} of {size} numbers{beside} of each image"

    def standardise(self, features: Any, source: str = "features") -> Any:
        """See :meth:`FeatureScaling.standardise`."""
        return self.scaling.standardise(features, source)

    def check_files(self, files: Mapping[str, PathLike]) -> None:
        """Check that files of features were made like those of the training, if both record it.

        Parameters
        ----------
        files : mapping of str to path
            The file of each field of ``scaling``.

        Raises
        ------
        OSError, ValueError
            If a file is missing, or its features were made by another encoder or with other settings.
        """
        for name, found in recorded_encodings(files).items():
            expected = self.encodings.get(name)
            if expected is not None and not expected.same_as(found):
                raise mismatch(
                    f"{files[name]}",
                    f"{name} by {found.describe()}",
                    f"by {expected.describe()}, as those of the training{_settings(found, expected)}",
                )

    @property
    def knows_encoders(self) -> bool:
        """Whether it is known how all features are made, so that photographs can be read."""
        return all(name in self.encodings for name in self.scaling)

    def with_encoder(self, path: PathLike, pca: PathLike | None = None, **settings: Any) -> Self:
        """The same inputs with the ONNX file of the encoder.

        Parameters
        ----------
        path : path
            The new location of the recorded encoder or, if none is recorded, the encoder that made the
            features. If the fields record different encoders, it replaces the path of those that record this
            one; call the method again for another.
        pca : path, optional
            The PCA of the features, if no encoder is recorded: see :mod:`rnnlab.data.projection`.
        **settings
            As in :func:`rnnlab.data.photographs.choose_encoding`, if no encoder is recorded.

        Raises
        ------
        OSError, ValueError
            If a file is missing or invalid, or a PCA or settings are given and the encoder is recorded, or
            the file is none of several recorded encoders.
        """
        check_regular(path, "the ONNX file of an encoder")
        if self.encodings:
            given = [*(["pca"] if pca is not None else []), *settings]
            if given:
                raise InputError(
                    f"{', '.join(given)} given, but the features that the model was trained on record their "
                    "encoder with its settings: give the ONNX file alone"
                )
            moved = {
                name: replace(found, path=str(path)) for name, found in self._recorded_with(path).items()
            }
            return replace(self, encodings={**self.encodings, **moved})
        encodings = {}
        for name in self.scaling:
            grid = self.reads_grid and name == "features"
            # A global vector in addition to a grid is the pooled vector, without the grid's PCA.
            projection = read_projection(pca) if pca is not None and name == "features" else None
            encodings[name] = choose_encoding(path, grid=grid, projection=projection, **settings)
        return replace(self, encodings=encodings)

    def _recorded_with(self, path: PathLike) -> Mapping[str, ImageEncoding]:
        """The recorded encodings by an ONNX file. It is compared only if there are several encoders.

        A single encoder is compared when it is loaded.
        """
        if len({found.sha256 for found in self.encodings.values()}) == 1:
            return self.encodings
        sha256 = Graph(path).sha256
        same = {name: found for name, found in self.encodings.items() if found.sha256 == sha256}
        if not same:
            recorded = " or ".join(f"{each.sha256} of {name}" for name, each in self.encodings.items())
            raise mismatch(f"{path}: sha256", sha256, f"{recorded}, the encoders that made the features")
        return same

    def encode(self, photographs: Sequence[PathLike]) -> Any:
        """The scaled features of photographs, as the model reads them.

        Raises
        ------
        OSError, ValueError
            As :meth:`open_encoders` and the function that it returns.
        """
        return self.open_encoders()(photographs)

    def open_encoders(self) -> Callable[[Sequence[PathLike]], Any]:
        """A function from photographs to their scaled features. It keeps the encoders loaded between calls.

        Raises
        ------
        ValueError
            If no encoder is recorded or given, or its features have another size than the model reads.
        OSError
            If an ONNX file is missing or invalid, or is another one. The function raises it if a photograph
            is missing or invalid.
        """
        if not self.knows_encoders:
            unknown = " and ".join(name for name in self.scaling if name not in self.encodings)
            remedy = "give its ONNX file with --encoder, and the PCA with --pca if one was applied"
            if self.encodings:
                remedy = f"--encoder cannot give it, because {' and '.join(self.encodings)} record theirs"
            raise MissingDataError(
                f"the {unknown} that the model was trained on do not record which encoder made them: {remedy}"
            )
        encoders = {name: ImageEncoder(self.encodings[name]) for name in self.scaling}
        for name, encoder in encoders.items():
            self._check_size(name, encoder)

        def encode(photographs: Sequence[PathLike]) -> Any:
            features = tuple(encoder.encode_files(photographs) for encoder in encoders.values())
            return self.standardise(features if len(features) > 1 else features[0], "photographs")

        return encode

    def _check_size(self, name: str, encoder: ImageEncoder) -> None:
        """Raise ValueError if an encoder's feature vectors are not of the size that the model reads."""
        found, expected, encoding = encoder.shape[-1], self.scaling[name].mean.size, encoder.encoding
        if found == expected:
            return
        after = "" if encoding.projection is None else " after the PCA"
        hint = ": give another --pca" if after else ""
        if not after and found > expected:
            hint = ": give with --pca the PCA that the features went through"
        raise InputError(
            f"{encoding.path}: layer {encoding.layer} has {found:,} numbers{after}, and the model reads "
            f"{expected:,} in a vector of {name}{hint}"
        )


def _settings(found: ImageEncoding, expected: ImageEncoding) -> str:
    """The settings that differ in two encodings by the same encoder, for a message."""
    ours, theirs = ({**each, **each.pop("preprocessing")} for each in (found.settings(), expected.settings()))
    if ours["sha256"] != theirs["sha256"]:
        return ""
    differ = [f"{name} {ours[name]!r}, not {theirs[name]!r}" for name in ours if ours[name] != theirs[name]]
    return f" ({', '.join(differ) or 'another PCA'})"
