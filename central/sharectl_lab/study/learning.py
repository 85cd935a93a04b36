"""Gymnasium environment over the twin, for learners of others (extra `lab`).

    env = TwinEnv(SteppedRun(Episode(load("bursts"), strategy, 86_400.0)))

A step is one cycle of sharectl. The observation has a row for each group, with the features of
`OBSERVED`: columns of the ledger's export, made free of units. The action has a number for each
group: power to move, as part of all power that is shared out, above 0 to take from the group. Their
mean is taken off first, so that what some give others get. The reward is that of `RewardWeights`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from sharectl_lab.study.training import REWARD, RewardWeights, Step, SteppedTwin

OBSERVED: Mapping[str, str] = {
    "error": "control_error_hs06, by the scale",
    "mean": "average of these ratios over the cycles, half of it from the last 2 hours",
    "trend": "change of the ratio since the cycle before, per 2 hours",
    "setpoint": "setpoint_hs06, by the scale",
    "single": "pending_by_size less unplaceable_by_size of one core, by cores of all nodes",
    "multi": "the same of more cores, times their size",
    "idle": "idle_cores of the cycle, by cores of all nodes",
}
"""Feature of `sharectl.control.learned.FEATURES` -> the columns of the ledger that it is made of.

The scale is the sum of power_hs06 or of setpoint_hs06 over all groups, the larger one. All are
within -1 and 1.
"""

Numbers = NDArray[np.float32]
_SEEDS = 2**31


class TwinEnv(gymnasium.Env[Numbers, Numbers]):
    """The twin of a pool, one cycle of sharectl a step."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as gymnasium has it

    def __init__(self, twin: SteppedTwin, weights: RewardWeights = REWARD) -> None:
        self.twin = twin
        self.weights = weights
        groups = len(twin.groups)
        self.observation_space = Box(-1.0, 1.0, (groups, len(OBSERVED)), np.float32)
        self.action_space = Box(-1.0, 1.0, (groups,), np.float32)

    def reset(
        self, *, seed: Optional[int] = None, options: Optional[dict[str, Any]] = None
    ) -> tuple[Numbers, dict[str, Any]]:
        """Begin an episode; without a seed, with one drawn from the generator of the last."""
        super().reset(seed=seed, options=options)
        if seed is None:
            seed = int(self.np_random.integers(_SEEDS))
        step = self.twin.reset(seed)
        return self._observation(step), {"seed": seed}

    def step(self, action: Numbers) -> tuple[Numbers, float, bool, bool, dict[str, Any]]:
        """Run a cycle; an episode has no end but that of its time."""
        moved = np.clip(np.asarray(action, np.float64), -1.0, 1.0)
        moved = moved - moved.mean()
        outputs = dict(zip(self.twin.groups, map(float, moved)))
        step = self.twin.step(outputs)
        reward = self.weights.reward(step.figures)
        return self._observation(step), reward, False, step.is_over, step.figures._asdict()

    def _observation(self, step: Step) -> Numbers:
        rows = [[step.values[group][name] for name in OBSERVED] for group in self.twin.groups]
        return np.clip(np.asarray(rows, np.float32), -1.0, 1.0)
