"""Group and user of an account, with dots and capitals."""

from __future__ import annotations

from typing import Optional

import pytest

from sharectl.shares.groups import group_and_user


@pytest.mark.parametrize(
    ("account", "acct_group", "parts"),
    [
        ("cms.prod.ada.lovelace", "cms.prod", ("cms.prod", "ada.lovelace")),
        ("CMS.Prod.Ada", "cms.prod", ("CMS.Prod", "Ada")),
        ("cms.prod.ada.lovelace", None, ("cms.prod.ada", "lovelace")),
        # AcctGroup is another group: what HTCondor charges is AccountingGroup.
        ("atlas.ada", "cms", ("atlas", "ada")),
        ("cmsprod.ada", "cms", ("cmsprod", "ada")),
        ("cms.bob@site.org", "cms", ("cms", "bob@site.org")),
        ("cms", "cms", ("cms", None)),
        ("", None, (None, None)),
        (None, "cms", (None, None)),
    ],
)
def test_group_and_user_of_an_account(
    account: Optional[str], acct_group: Optional[str], parts: tuple[Optional[str], Optional[str]]
) -> None:
    assert group_and_user(account, acct_group) == parts
