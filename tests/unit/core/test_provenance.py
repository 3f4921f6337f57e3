import pytest

from overread.core import provenance
from overread.core.provenance import source_hash


def test_a_changed_source_changes_its_own_hash_only(tmp_path, monkeypatch):
    for name in ("one/a.py", "two/b.py", "overread/core/records.py", "config.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(provenance, "PACKAGES", tmp_path)
    source_hash.cache_clear()
    before = source_hash("one"), source_hash("two"), source_hash("one", "two"), source_hash("two", "one")
    assert before[2] == before[3]
    (tmp_path / "two/b.py").write_text("changed")
    source_hash.cache_clear()
    assert source_hash("one") == before[0]
    assert source_hash("two") != before[1]
    assert source_hash("one", "two") != before[2]
    source_hash.cache_clear()


def test_a_part_that_is_not_there_is_an_error():
    with pytest.raises(FileNotFoundError):
        source_hash("nothing")
