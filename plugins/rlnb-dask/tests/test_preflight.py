"""The lines about nodes that are inconsistent with each other."""

from __future__ import annotations

from importlib import metadata

from rlnb_dask import preflight
from rlnb_dask.node import NodeFacts


def facts(host: str, **versions: str) -> NodeFacts:
    return NodeFacts(host=host, versions={"python": "3.12.1", **versions}, free_bytes=2**30)


def test_the_node_with_another_version_than_most_is_named() -> None:
    nodes = [facts("a", torch="2.9"), facts("b", torch="2.8"), facts("c", torch="2.9")]
    assert preflight.differences(nodes, ("torch",)) == ["node 1 (b): torch 2.8, but most nodes have 2.9"]
    assert preflight.differences(nodes[::2], ("torch",)) == []


def test_a_node_without_versions_is_not_compared() -> None:
    nodes = [facts("a", torch="2.9"), NodeFacts(host="b", problem="the interpreter does not list its packages")]
    assert preflight.differences(nodes, ("torch",)) == []


def test_a_full_disk_is_reported_with_its_node() -> None:
    nodes = [facts("a"), NodeFacts(host="b", free_bytes=2**20)]
    assert preflight._own_problems(nodes) == ["node 1 (b): only 1 MiB are free in the run's folder"]


def test_the_host_of_an_address_has_no_port_and_no_brackets() -> None:
    assert preflight.host_of("tls://10.0.0.1:8786") == "10.0.0.1"
    assert preflight.host_of("tcp://[::1]:8786") == "::1"


def test_another_version_than_the_notebooks_is_named() -> None:
    nodes = [facts("a", rlnb="9.9", mine="1"), facts("b", rlnb="9.9", mine="1")]
    (line,) = preflight.foreign(nodes, {"mine": "1", "rlnb": "0.3"})
    assert line.startswith("node 0 (a) and 1 more: rlnb 9.9, but the notebook has 0.3.")
    assert preflight.foreign(nodes, {"mine": "2"})[0].startswith("node 0 (a) and 1 more: mine 1, but")
    assert preflight.foreign(nodes, {"rlnb": "9.9", "only-here": "1", "unknown": ""}) == []
    agents = NodeFacts(host="a", versions={"rlnb": "0.3"}, agent_rlnb="9.9")
    assert preflight.foreign([agents], {"rlnb": "0.3"})[0].startswith("node 0 (a): rlnb 9.9, but")


def test_the_notebooks_versions_are_todays_even_if_the_run_was_created_with_others() -> None:
    of_script = {"rlnb": "0.3", "rlnb-dask": "0.2", "gone": "1.0", "python": "3.12.1", "torch": "2.9", "isaacsim": "6"}
    today = {name: metadata.version(name) for name in ("rlnb", "rlnb-dask")}
    assert preflight.ours(of_script) == today
    assert preflight.foreign([facts("a", **today)], preflight.ours(of_script)) == []
