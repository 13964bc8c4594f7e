"""The light half: the description of the library, and its agent config."""

from rlnb.plugin import Input, Library, hookimpl

CLONING = Library(
    name="cloning",
    backend="rlnb_cloning.backend:Cloning",
    agent_key="cloning_cfg_entry_point",
    default_agent="rlnb_cloning.plugin:agent",
    checkpoint_glob="model_*.pt",
    checkpoint_pattern=r"model_(\d+)\.pt$",
    saves_when_stopped=True,
    inputs={"demos": Input(kind="rollouts")},
    metrics={"policy_loss": "Loss/cloning"},
    requires=("torch>=2.4",),
    exports=("torchscript", "onnx"),
)


def agent() -> dict[str, float]:
    """Return the agent config. An iteration is a pass over all recorded steps."""
    return {"hidden": 64, "learning_rate": 1e-3, "batch_size": 256, "max_iterations": 100, "save_interval": 25}


@hookimpl
def rlnb_libraries() -> list[Library]:
    return [CLONING]
