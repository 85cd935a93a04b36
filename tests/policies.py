"""Policies of the law `learned`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sharectl.control.learned import Policy

POLICY: dict[str, Any] = {
    "schema_version": 1,
    "features": ["error", "error_idle"],
    "weights": [1.0, -0.5],
    "half_life_seconds": 7200.0,
    "training": {
        "scenarios": ["small-site"],
        "seeds": [1, 2],
        "score": -1.5,
        "score_before": -2.0,
        "method": "by hand",
    },
}
HALF = Policy(("error",), (0.5,), 3600.0, {})
"""Policy that moves half of the error."""


def write_policy(folder: Path, **changes: Any) -> Path:
    """A policy in a file, with other values of some of its keys."""
    path = folder / "policy.json"
    path.write_text(json.dumps({**POLICY, **changes}), encoding="utf-8")
    return path
