"""Everything the app's own description allows, and much that it does not: never an internal error."""

import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings


@pytest.mark.xdist_group("openapi")
def test_no_request_ends_in_an_internal_error(sampled: Any, full: Any) -> None:
    """Two requests made up for each operation, six in full."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import schemathesis

        described = sampled.get("/openapi.json").json()
        operations = [found.ok() for found in schemathesis.openapi.from_dict(described).get_all_operations()]
    assert len(operations) > 30
    failed: list[str] = []
    for operation in operations:
        _try(sampled, operation, full(2, 6), failed)
    assert not failed, sorted(set(failed))


def _try(workbench: Any, operation: Any, examples: int, failed: list[str]) -> None:
    """Requests as described, and ones with everything wrong that can be."""

    @settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy())
    def requested(case: Any) -> None:
        sent = case.as_transport_kwargs(base_url="http://127.0.0.1:8765")
        known = {name: sent[name] for name in ("params", "data", "json", "files") if sent.get(name) is not None}
        answer = workbench.client.request(sent["method"], sent["url"], headers=workbench.headers(), **known)
        if answer.status_code >= 500:
            failed.append(f"{operation.method.upper()} {operation.path}: {answer.status_code}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        requested()
