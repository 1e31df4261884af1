"""What is loaded when: a start of the gateway loads nothing of the shell, the first prompt nothing of the client."""

import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("imported", "absent"),
    [
        (
            "hms_gateway.cli.application, hms_gateway.cli.operations.serving, hms_gateway.gateway.running",
            {"prompt_toolkit", "sqlglot", "hms_gateway.cli.hiveql"},
        ),
        (
            "hms_gateway.cli.application, hms_gateway.cli.calls.targets, hms_gateway.cli.sql.shell, "
            "hms_gateway.cli.sql.prompting",
            {"httpx", "sqlglot", "rich.console", "hms_gateway.rpc.structs", "hms_gateway.client"},
        ),
        ("hms_gateway.cli.sql.conversation", {"sqlglot"}),
    ],
)
def test_what_is_not_needed_yet_is_not_loaded(imported, absent):
    code = f"import {imported}, sys; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert absent & set(ran.stdout.split()) == set()
