"""The arguments of a run, under the names by which the user gave them."""

from __future__ import annotations

import dataclasses

import rlnb
from rlnb.records.arguments import ARGUMENTS, alike, argument, asked

MANIFEST = rlnb.Manifest(
    run_id="r",
    created="",
    task=rlnb.Task(
        id="Echo",
        source_sha256="0123456789abcdef",
        presets=("a", "b"),
        overrides={"sim.dt": 0.005},
        launcher_args={"livestream": 2},
    ),
    library="echo",
    seed=0,
    deterministic=True,
    agent={"gamma": 0.99, "+normalize_input": True},
    agent_name="generic",
    resources=rlnb.Resources(device="cpu", nodes=2, nproc_per_node=4),
    tags=("baseline", "first"),
)


def test_overrides_and_agent_values_are_keyed_by_their_paths() -> None:
    values = asked(MANIFEST)
    assert (values["sim.dt"], values["agent.gamma"]) == (0.005, 0.99)
    assert values["agent"] == "generic"
    assert values["agent.normalize_input"] is True, "the leading + of an added key is removed"
    assert (values["launcher_args.livestream"], values["deterministic"]) == (2, True)


def test_ranks_count_all_nodes_and_lists_are_joined() -> None:
    values = asked(MANIFEST)
    assert (values["ranks"], values["presets"], values["tags"]) == (8, "a+b", "baseline+first")
    assert values["source"] == "0123456"


def test_defaults_are_omitted_but_a_seed_of_zero_is_not() -> None:
    values = asked(MANIFEST)
    assert values["seed"] == 0
    assert not {"num_envs", "max_iterations", "physics", "renderer"} & set(values)


def test_inputs_are_arguments_which_averaged_runs_need_not_share() -> None:
    manifest = dataclasses.replace(MANIFEST, inputs={"teacher": "a-run/logs/model_7.pt"})
    assert asked(manifest)["inputs.teacher"] == "a-run/logs/model_7.pt"
    assert alike(manifest)["inputs.teacher"] == "a run"
    assert "inputs.teacher" not in asked(MANIFEST)


def test_the_origin_of_the_weights_has_two_names() -> None:
    manifest = dataclasses.replace(MANIFEST, parent="an-earlier-run")
    assert asked(manifest)["init_from"] == "an-earlier-run"
    assert argument(manifest, "init_from") == argument(manifest, "parent") == "an-earlier-run"
    assert "init_from" not in asked(MANIFEST)
    assert {"init_from", "parent", "presets"} <= ARGUMENTS
