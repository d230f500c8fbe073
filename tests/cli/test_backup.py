"""`crowdtree backup` and `crowdtree restore`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the server's packages")

from tests.cli.helpers import complaint, result, run
from tests.storelab import Small


def test_backup_and_restore_with_the_media_beside_the_database(
    capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    campaign = Small(url="birds.db")
    campaign.start()
    campaign.answer(campaign.worker(), 1)
    Path("birds-media/1").mkdir(parents=True)
    Path("birds-media/1/a.png").write_bytes(b"picture")
    made = result(capsys, "backup", "b.backup", "--database", "birds.db")
    campaign.store.close()
    assert (made["campaigns"], made["answers"], made["media"]) == (1, 1, 1)
    run("restore", "b.backup", "--database", "new.db")
    shown = capsys.readouterr().out
    assert "Restored into new.db: 1 campaign, 1 line of the log, 1 media file." in shown
    assert "Next: crowdtree campaign verify 1 --database new.db" in shown
    assert Path("new-media/1/a.png").read_bytes() == b"picture"
    assert result(capsys, "campaign", "verify", "1", "--database", "new.db")["agrees"]
    assert "--replace" in complaint(capsys, "restore", "b.backup", "--database", "new.db")
    again = result(capsys, "restore", "b.backup", "--database", "new.db", "--replace")
    assert again["media"] == 1
    without = result(capsys, "backup", "c.backup", "--database", "birds.db", "--no-media")
    assert without["media"] == 0
