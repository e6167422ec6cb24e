import json

import numpy as np
import pytest

import towpath
from towpath.errors import ArtifactError
from towpath.files import write_manifest
from towpath.rng import Rng
from towpath.worlds.latent import LatentWorld, make_latent_world
from towpath.worlds.store import STORED_AS, load_world, save_world


@pytest.fixture(scope="module")
def world():
    return make_latent_world(LatentWorld(users=40, items=30, shown_per_user=8), Rng(0))


def test_a_world_comes_back_as_it_was(world, tmp_path):
    save_world(world, tmp_path / "w", {"seed": 0})
    back, about = load_world(tmp_path / "w")
    assert about == {"seed": 0}
    np.testing.assert_array_equal(back.relevance, world.relevance)
    np.testing.assert_array_equal(back.propensity, world.propensity)
    for part in ("exposures", "log"):
        ours, theirs = getattr(world, part), getattr(back, part)
        assert ours.user_ids == theirs.user_ids
        for column in ("users", "items", "times", "values", "propensities", "exposures"):
            np.testing.assert_array_equal(getattr(ours, column), getattr(theirs, column))
            assert getattr(ours, column).dtype == getattr(theirs, column).dtype


def test_the_folder_is_a_data_set_of_its_clicks_with_propensities(world, tmp_path):
    save_world(world, tmp_path / "w", {})
    rows = towpath.read(tmp_path / "w").interactions
    assert len(rows) == len(world.log)
    assert np.all(rows.exposures)
    ids = rows.user_ids.ids(rows.users), rows.item_ids.ids(rows.items)
    users, items = world.log.user_ids.codes(ids[0]), world.log.item_ids.codes(ids[1])
    np.testing.assert_allclose(rows.propensities, world.propensity[users, items])


def test_a_changed_world_is_refused(world, tmp_path):
    save_world(world, tmp_path / "w", {})
    manifest = tmp_path / "w" / "manifest.json"
    manifest.write_text(
        json.dumps(json.loads(manifest.read_text()) | {"about": {"seed": 9}}, indent=2) + "\n"
    )
    with pytest.raises(ArtifactError, match="does not match its own checksum"):
        load_world(tmp_path / "w")


def test_what_is_no_world_is_refused(tmp_path):
    with pytest.raises(ArtifactError, match="There is no saved world"):
        load_world(tmp_path)


@pytest.mark.parametrize("part", ["truth.safetensors", "_users.parquet", "_exposures.parquet"])
def test_a_part_of_another_world_is_refused(part, world, tmp_path):
    """Also if somebody has made all checksums anew (issue 21)."""
    other = make_latent_world(LatentWorld(users=41, items=31, shown_per_user=8), Rng(0))
    save_world(world, tmp_path / "w", {})
    save_world(other, tmp_path / "other", {})
    names = ("events.parquet", "_exposures.parquet", "_users.parquet", "_items.parquet", "truth.safetensors")
    (tmp_path / "w" / part).write_bytes((tmp_path / "other" / part).read_bytes())
    write_manifest(tmp_path / "w", STORED_AS, {"about": {}}, names)
    with pytest.raises(ArtifactError, match="does not fit this towpath"):
        load_world(tmp_path / "w")
