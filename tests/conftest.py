"""Settings of the whole suite."""

from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# A machine that is busy draws slowly and runs an example long; neither says anything about the code. The same examples
# run every time, so that a change is judged by what it changes; `--hypothesis-profile=explore` looks for new ones.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("suite", settings.get_profile("explore"), derandomize=True)
settings.load_profile("suite")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Escape lone surrogates in captured output: a worker cannot send them to the process that reports."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report
