"""The program of `typed.py` runs, too."""

import typed


def test_it_runs():
    found = typed.main()
    assert found["plain"] == found["async"] == {"order": {"number": 3, "paid": False}, "t": "HI"}
