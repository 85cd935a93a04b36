"""What a YAML file of consumption policies may say: names, units and ranges. `consumption_file` reads one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Optional

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from sharectl.adapters.config_types import Section, wrong
from sharectl.adapters.wording import quoted
from sharectl.core.consumption import MAX_CLAIMS
from sharectl.core.consumption_rules import ModelName

MAX_UNITS = 10**15
"""Units of an asset."""
MAX_TEXT = 2000
"""Characters of an expression."""


def _one_line(text: str) -> str:
    if not text.strip():
        raise wrong("there is no expression; write one, such as TARGET.RequestCpus")
    if "\n" in text or "\t" in text or not text.isprintable():
        raise wrong("an expression is one line; join its lines")
    if "$" in text or text.rstrip().endswith("\\"):
        raise wrong(f"{quoted(text)} holds a macro of HTCondor's configuration; write its value")
    if text.count('"') % 2:
        raise wrong(f"{quoted(text)} has a quote that is not closed")
    return text.strip()


def _whole(amount: Any) -> Any:
    if isinstance(amount, float) and not amount.is_integer():
        raise wrong(
            f"{amount} is no whole number, and HTCondor gives a claim whole units, of cores 1 at least; write a whole number, "
            "and let NUM_CPUS say more cores than there are where jobs share them"
        )
    return amount


def _nothing(amount: Optional[int]) -> Optional[int]:
    if amount:
        raise wrong(
            "HTCondor puts 0 for what a job does not ask for before it asks the policy, so that only 0 has an effect; write "
            "missing: 0, or step for a least amount"
        )
    return amount


Amount = Annotated[int, BeforeValidator(_whole)]
MaybeAmount = Annotated[Optional[int], BeforeValidator(_whole)]
Expression = Annotated[str, Field(min_length=1, max_length=MAX_TEXT), AfterValidator(_one_line)]


class _Asset(Section):
    declare: Optional[int] = Field(
        None,
        ge=1,
        le=MAX_CLAIMS,
        description="Units of a custom resource that the machine has: MACHINE_RESOURCE_<name> is rendered.",
    )


class ChargeAsset(_Asset):
    """Of `minimum_charge`."""

    charge: Amount = Field(ge=1, le=MAX_UNITS, description="Least amount that a claim is charged.")


class LevelsAsset(_Asset):
    """Of `quanta_all` and `quanta_any`."""

    levels: int = Field(ge=1, le=MAX_CLAIMS, description="Quanta that the slot's amount is cut into.")
    total: MaybeAmount = Field(
        None,
        ge=1,
        le=MAX_UNITS,
        description="Amount of one slot without claims; by default what the slot's ad says.",
    )


class SharedAsset(_Asset):
    """Of `fixed_claims`."""

    even: Optional[bool] = Field(
        None, description="Each claim takes the slot's amount divided by `claims`: the default."
    )
    always: MaybeAmount = Field(None, ge=0, le=MAX_UNITS, description="Amount that each claim takes.")
    request: Optional[bool] = Field(
        None, description="What the job asks for; of cores and memory at least 1."
    )


class ExpressionAsset(_Asset):
    """Of `expressions`."""

    request: Optional[bool] = Field(None, description="What the job asks for.")
    step: MaybeAmount = Field(
        None, ge=1, le=MAX_UNITS, description="Requests are rounded up to whole steps, at least one."
    )
    missing: Annotated[Optional[int], AfterValidator(_nothing)] = Field(
        None, description="0: a job that does not ask for it gets none; without, it gets a step."
    )
    always: MaybeAmount = Field(None, ge=0, le=MAX_UNITS, description="Amount that each claim takes.")
    whole: Optional[bool] = Field(None, description="All that the slot has: one claim.")
    expression: Optional[Expression] = Field(None, description="A ClassAd expression, with MY. and TARGET.")


ASSETS: Mapping[str, type[BaseModel]] = {
    "fixed_claims": SharedAsset,
    "quanta_all": LevelsAsset,
    "quanta_any": LevelsAsset,
    "minimum_charge": ChargeAsset,
    "expressions": ExpressionAsset,
}
"""Model -> what may be said of an asset."""


class SlotConfig(Section):
    """The slots of one type; ``assets`` are validated by the model."""

    model: ModelName = Field(description="How claims are counted.")
    assets: Mapping[str, Any] = Field({}, description="Every asset of the slot, and how claims take of it.")
    weight: Optional[Expression] = Field(
        None,
        description="SLOT_WEIGHT: `model` (the default), the name of an asset, or a ClassAd expression.",
    )
    num_claims: Optional[int] = Field(
        None,
        ge=1,
        le=MAX_CLAIMS,
        description="Matches of one cycle at most; by default as many as the machine has cores.",
    )
    claims: Optional[int] = Field(None, ge=1, le=MAX_CLAIMS, description="Claims of `fixed_claims`.")
    resources: Optional[Expression] = Field(
        None,
        description="SLOT_TYPE_<N>, such as `cpus=50%, memory=50%`; by default it is configured elsewhere.",
    )
    slots: Optional[int] = Field(None, ge=1, le=1000, description="NUM_SLOTS_TYPE_<N>, with `resources`.")


class FileConfig(Section):
    """The whole file: one of the two keys, or both."""

    startd: Optional[Any] = Field(
        None, description="The policy of every slot of the node, and what slot types leave out."
    )
    slot_types: Optional[Mapping[str, Any]] = Field(None, description="N of SLOT_TYPE_<N> to its policy.")
