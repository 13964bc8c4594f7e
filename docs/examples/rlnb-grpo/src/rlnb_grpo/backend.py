"""GRPO (Shao et al. 2024, arXiv:2402.03300): the advantage of a completion is relative to those of the same prompt."""

import copy
from functools import partial

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.tensorboard import SummaryWriter

from rlnb.backend import EvaluationResult, random_state, restore_random_state, vet_checkpoint, write_whole

TOKENS, LENGTH = 5, 2
"""Number of different tokens, and tokens of a prompt and of its answer."""


class LanguageModel(nn.Module):
    """Gives logits of the next token, shape (n, length, TOKENS), for tokens of shape (n, length)."""

    def __init__(self, width):
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, width)
        self.recurrence = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, TOKENS)

    def forward(self, tokens):
        return self.head(self.recurrence(self.embedding(tokens))[0])

    def of_answer(self, prompts, answers):
        """Return the logits of the answers' tokens, shape (n, LENGTH, TOKENS)."""
        return self(torch.cat([prompts, answers], 1)[:, :-1])[:, LENGTH - 1 :]

    @torch.no_grad()
    def write(self, prompts, sample):
        """Return answers to prompts, both of shape (n, LENGTH): sampled, or the most likely tokens."""
        tokens = prompts
        for _ in range(LENGTH):
            logits = self(tokens)[:, -1]
            new = torch.distributions.Categorical(logits=logits).sample() if sample else logits.argmax(-1)
            tokens = torch.cat([tokens, new[:, None]], 1)
        return tokens[:, LENGTH:]


class Grpo:
    """The :class:`rlnb.backend.Evaluating` backend."""

    def train(self, env, agent_cfg, ctx):
        torch.manual_seed(ctx.seed)
        policy = LanguageModel(agent_cfg["width"]).to(ctx.device)
        if ctx.init_from:
            policy.load_state_dict(load(ctx.init_from, ctx.device, ctx.trust)["policy"])
        state = {"policy": policy, "reference": copy.deepcopy(policy)}
        state["optimiser"] = torch.optim.Adam(policy.parameters(), agent_cfg["learning_rate"])
        first, total = 0, ctx.max_iterations or agent_cfg["max_iterations"]
        if ctx.checkpoint:
            checkpoint = load(ctx.checkpoint, ctx.device, ctx.trust)
            first = checkpoint["iteration"] + 1
            for name, part in state.items():
                part.load_state_dict(checkpoint[name])
            restore_random_state(checkpoint["random"])
        ctx.resumed(partial(save, state, first - 1))
        answers = agent_cfg["prompts"] * agent_cfg["group_size"]
        ctx.started(  # a frame is a token
            horizon=LENGTH,
            frames_per_step=LENGTH * answers,
            max_iterations=total,
            first_iteration=first,
            num_envs=answers,
        )
        with SummaryWriter(ctx.log_dir) as events:
            for iteration in range(first, total):
                for name, value in learn(agent_cfg, ctx.device, **state).items():
                    events.add_scalar(f"train/{name}", value, iteration)
                events.flush()
                path = ctx.log_dir / f"model_{iteration}.pt"
                write = partial(write_whole, path, partial(save, state, iteration))
                if (iteration + 1) % agent_cfg["save_interval"] == 0 or iteration == total - 1:
                    write()
                ctx.iteration_finished(write)
        return [policy]

    def evaluate(self, agent_cfg, checkpoint, *, episodes, seed, device, trust, deterministic):
        policy = LanguageModel(agent_cfg["width"]).to(device)
        policy.load_state_dict(load(checkpoint, device, trust)["policy"])
        torch.manual_seed(seed)
        prompts = torch.randint(TOKENS, (episodes, LENGTH)).to(device)
        right = prompts.flip(1)
        with torch.no_grad():
            losses = cross_entropy(policy.of_answer(prompts, right).transpose(1, 2), right, reduction="none")
        answers = policy.write(prompts, sample=not deterministic)
        values = {"accuracy": (answers == right).all(1).tolist(), "log_likelihood": (-losses.mean(1)).tolist()}
        return EvaluationResult(values=values)


def learn(agent_cfg, device, policy, reference, optimiser):
    """Update the policy once, and return what was measured by name."""
    prompts = torch.randint(TOKENS, (agent_cfg["prompts"], LENGTH)).to(device)
    prompts = prompts.repeat_interleave(agent_cfg["group_size"], 0)
    answers = policy.write(prompts, sample=True)
    rewards = (answers == prompts.flip(1)).float().mean(1)
    groups = rewards.view(agent_cfg["prompts"], -1)
    advantages = ((groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 1e-4)).view(-1, 1)
    own = torch.distributions.Categorical(logits=policy.of_answer(prompts, answers))
    with torch.no_grad():
        others = torch.distributions.Categorical(logits=reference.of_answer(prompts, answers))
    kl = torch.distributions.kl_divergence(own, others).mean()
    loss = -(advantages * own.log_prob(answers)).mean() + agent_cfg["kl_weight"] * kl
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    measured = {"reward": rewards.mean(), "loss": loss, "entropy": own.entropy().mean(), "kl": kl}
    return {name: value.item() for name, value in measured.items()}


def save(state, iteration, path):
    """Write a checkpoint."""
    parts = {name: part.state_dict() for name, part in state.items()}
    torch.save({**parts, "iteration": iteration, "random": random_state()}, path)


def load(path, device, trust):
    """Return the content of a checkpoint."""
    vet_checkpoint(path, trust)
    return torch.load(path, map_location=device, weights_only=not trust)
