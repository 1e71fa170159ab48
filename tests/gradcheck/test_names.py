from rnnlab.gradcheck.names import matching


def test_matching():
    names = ["lstm_step", "lstm", "gru_step", "gru, lengths"]
    assert matching(names, None, "only") == names
    assert matching(names, "STEP", "only") == ["lstm_step", "gru_step"]
    assert matching(names, "gru*step", "only") == ["gru_step"]
    assert matching(names, "[lg]*ru,", "only") == ["gru, lengths"]
