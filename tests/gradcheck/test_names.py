import pytest

from rnnlab.gradcheck.names import matching


def test_matching():
    names = ["lstm_step", "lstm", "gru_step", "gru, lengths"]
    assert matching(names, None, "only") == names
    assert matching(names, "STEP", "only") == ["lstm_step", "gru_step"]
    assert matching(names, "gru*step", "only") == ["gru_step"]
    assert matching(names, "[lg]*ru,", "only") == ["gru, lengths"]


def test_the_error_says_what_may_be_given():
    names = ["lstm_step", "gru, lengths", "CaptioningRNN rnn ARNet", "CaptioningRNN lstm ARNet"]
    begin = "Names begin with lstm_step, gru, CaptioningRNN$"
    with pytest.raises(
        ValueError, match=f"^only is 'foo', which matches no name, expected a part of a name. {begin}"
    ):
        matching(names, "foo", "only")
    with pytest.raises(ValueError, match=f"expected a part of a name, such as lstm_step. {begin}"):
        matching(names, "lsmt_step", "only")
