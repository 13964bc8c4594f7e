"""The registration. Rank 0 learns on the CPU and loads no simulator; the other ranks share the envs."""

from rlnb.plugin import Library, Role, hookimpl

LIBRARY = Library(
    name="actor_learner",
    backend="rlnb_actor_learner.backend:ActorLearner",
    agent_key="actor_learner_cfg_entry_point",
    default_agent="rlnb_actor_learner.plugin:config",
    distributed=True,
    roles="rlnb_actor_learner.plugin:roles",
    horizon_key="horizon",
    saves_when_stopped=True,
    metrics={"reward": "Train/return", "policy_loss": "Loss/policy", "value_loss": "Loss/value", "fps": "Perf/fps"},
    requires=("torch>=2.4",),
)


def roles(world_size: int, agent: object) -> list[Role]:
    """Return the role of each rank. A single rank would have no env, so rlnb refuses it."""
    return [Role(name="learner", env=False, cpu=True), *[Role(name="actor")] * (world_size - 1)]


def config() -> dict[str, float]:
    """Return the agent config for every task."""
    return {"max_iterations": 300, "save_interval": 10, "horizon": 16, "learning_rate": 3e-3}


@hookimpl
def rlnb_libraries() -> list[Library]:
    return [LIBRARY]
