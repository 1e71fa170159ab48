import numpy as np

from rnnlab.gradcheck.cases import CELLS
from rnnlab.gradcheck.model_cases import model_cases


def test_every_cell_is_in_every_kind_of_model():
    names = [name for name, _, _ in model_cases(np.random.default_rng(0))]
    assert len(set(names)) == len(names)
    for kind in ("CaptioningRNN", "LanguageModel", "Seq2Seq", "SequenceClassifier"):
        for cell in CELLS:
            assert [name for name in names if name.startswith(f"{kind} {cell} ")], (kind, cell)


def test_one_cell_alone():
    models = list(model_cases(np.random.default_rng(0), ("gru",)))
    assert {model.config()["cell_type"] for _, model, _ in models} == {"gru"}
    for _, model, batch in models:
        loss, grads = model.loss(*batch)
        assert np.isfinite(loss)
        assert np.isfinite(grads.flat).all()
