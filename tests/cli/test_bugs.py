from rnnlab.cli.bugs import how_to_report, without_reports


def test_a_report_is_taken_out_of_a_log():
    report = how_to_report().split("\n")
    assert len(report) == 2
    assert without_reports(["KeyError: 3", *report, "", "begun again"]) == ["KeyError: 3", "", "begun again"]
    assert without_reports(["no report"]) == ["no report"]
    assert without_reports([]) == []
