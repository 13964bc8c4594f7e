"""The parts of skrl's agents: their tags, their shares, and the means over them."""

from __future__ import annotations

from types import SimpleNamespace

from rlnb_skrl.part import Part, means_over, parts


def part(name: str) -> Part:
    return Part(name=name, policy=None, modules={}, scheduler=None)


def test_the_common_metric_is_the_mean_over_the_agents() -> None:
    agents = [part("cart"), part("pole")]
    data = {
        "Loss / Value loss (cart)": [1.0, 3.0],
        "Loss / Value loss (pole)": [6.0],
        "Learning / Learning rate (cart)": [0.1],  # only one agent has it: no mean
        "Reward / Total reward (mean)": [5.0],
    }
    assert means_over(agents, data) == {"Loss / Value loss": [4.0]}


def test_a_single_agent_has_no_means() -> None:
    assert means_over([part("")], {"Loss / Value loss": [1.0], "Reward / Total reward (mean)": [5.0]}) == {}


def test_a_part_names_its_tags_and_takes_its_share() -> None:
    assert part("cart").tag("Loss / Value loss") == "Loss / Value loss (cart)"
    assert part("").tag("Loss / Value loss") == "Loss / Value loss"
    assert part("cart").of({"cart": 1, "pole": 2}) == 1
    assert part("").of([1, 2]) == [1, 2]


def test_a_single_agent_algorithm_is_one_part_without_a_name() -> None:
    agent = SimpleNamespace(policy="policy", checkpoint_modules={"policy": "policy"})
    (one,) = parts(agent)
    assert (one.name, one.policy, one.scheduler) == ("", "policy", None)
    assert one.modules is agent.checkpoint_modules, "so that additions are saved"


def test_a_multi_agent_algorithm_has_one_part_per_agent() -> None:
    agent = SimpleNamespace(
        possible_agents=["cart", "pole"],
        policies={"cart": "a", "pole": "b"},
        checkpoint_modules={"cart": {}, "pole": {}},
        schedulers={"pole": "scheduler"},
    )
    assert [(one.name, one.policy, one.scheduler) for one in parts(agent)] == [
        ("cart", "a", None),
        ("pole", "b", "scheduler"),
    ]
