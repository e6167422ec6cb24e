"""What is wrong with settings is one sentence."""

import pytest

from towpath.errors import ConfigError
from towpath.models.registry import parse_settings
from towpath.training.settings import TrainingSettings


def test_a_value_that_cannot_be_names_its_setting() -> None:
    with pytest.raises(
        ConfigError, match=r"^The setting epochs cannot be 0: input should be greater .* 1\.$"
    ):
        parse_settings(TrainingSettings, {"epochs": 0})


def test_settings_that_contradict_each_other_are_said_without_the_librarys_words() -> None:
    sentence = r"^These settings do not go together: hard_negatives \(4\) cannot exceed negatives \(3\)\.$"
    with pytest.raises(ConfigError, match=sentence):
        parse_settings(TrainingSettings, {"hard_negatives": 4, "negatives": 3})
