"""The systemd unit has the rights it needs and no others, as systemd itself rates them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "hms-gateway.service"
# systemd rates from 0 (nothing is exposed) to 100.
EXPOSURE_MAX = 20


def test_systemd_knows_every_line_of_the_unit(tmp_path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze (package systemd)")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/hms-gateway/bin/hms-gateway", "/bin/true"))
    verified = subprocess.run([program, "verify", str(unit)], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert UNIT.name not in verified.stderr, verified.stderr


def test_the_unit_is_rated_below_two() -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze (package systemd)")
    command = [program, "security", "--offline=yes", "--no-pager", f"--threshold={EXPOSURE_MAX}", str(UNIT)]
    rated = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    if "unrecognized option" in rated.stderr:
        pytest.skip("systemd-analyze older than 250")
    assert rated.returncode == 0, rated.stdout[-500:] + rated.stderr


def test_new_files_are_for_the_service_alone() -> None:
    lines = UNIT.read_text().splitlines()
    assert "UMask=0077" in lines
    assert "CapabilityBoundingSet=" in lines


def test_files_of_root_can_be_given_to_its_account() -> None:
    """A dynamic user has no group that a file might have before the start."""
    text = UNIT.read_text()
    [user] = re.findall(r"^User=(.*)$", text, re.MULTILINE)
    assert "DynamicUser" not in text
    assert re.findall(r"^#   useradd .* (\S+)$", text, re.MULTILINE) == [user]
    assert re.findall(r"^#   install .* --group=(\S+) --mode=640 ", text, re.MULTILINE) == [user]
