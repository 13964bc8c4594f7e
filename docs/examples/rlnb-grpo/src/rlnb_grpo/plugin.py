"""The registration: a library without a simulator, its task, and names for what it measures."""

from rlnb import Task
from rlnb.plugin import Library, hookimpl

GRPO = Library(
    name="grpo",
    backend="rlnb_grpo.backend:Grpo",
    default_agent="rlnb_grpo.plugin:agent",
    requires=("torch>=2.4", "tensorboard"),
    metrics={"reward": "train/reward", "policy_loss": "train/loss", "entropy": "train/entropy", "kl": "train/kl"},
    metric_names={
        "kl": "divergence from the reference model, in nats per token",
        "accuracy": "share of prompts with the right answer, 0 to 1",
        "log_likelihood": "log probability of the right answer, in nats per token",
    },
    saves_when_stopped=True,
    simulator=False,
)


def agent() -> dict[str, float]:
    """Return the agent config."""
    return {
        "max_iterations": 300,
        "save_interval": 20,
        "prompts": 16,
        "group_size": 8,  # completions of each prompt
        "width": 64,
        "learning_rate": 3e-3,
        "kl_weight": 0.3,
    }


@hookimpl
def rlnb_libraries() -> list[Library]:
    return [GRPO]


@hookimpl
def rlnb_tasks() -> list[Task]:
    return [Task(id="Reverse")]  # write the tokens of a prompt in reverse
