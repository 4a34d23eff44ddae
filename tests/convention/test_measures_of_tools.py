"""Each measure of each convention against the tool itself, on random data that no two runs of it share by chance."""

from __future__ import annotations

import pytest
from conventions_data import differences
from measured import LIVE, RIVAL_OF, ragged
from rivals import RIVALS

# as in test_conventions_rivals
pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.xdist_group("conventions_rivals"),
]

CASES = [(tool, measure, k) for (tool, measure), live in LIVE.items() for k in live.cutoffs]


@pytest.mark.parametrize(("tool", "measure", "k"), CASES)
def test_the_tool_says_so(tool: str, measure: str, k: int | None) -> None:
    if (why := RIVALS[RIVAL_OF.get(tool, tool)].missing) is not None:
        pytest.skip(f"{tool} is not installed here: {why}")
    live = LIVE[tool, measure]
    queries = ragged(11, live)
    assert not differences(queries, tool, k, live.run(queries, k), measure)
