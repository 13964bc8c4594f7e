"""The backend: actors send rollouts to the learner, and get new weights from it (synchronous actor-critic, A2C)."""

import time
from functools import partial

import torch
import torch.distributed as dist
from torch.utils.tensorboard import SummaryWriter

from rlnb.backend import random_state, restore_random_state, vet_checkpoint, write_whole

DISCOUNT = 0.99


class ActorLearner:
    def train(self, env, agent_cfg, ctx):
        torch.manual_seed(ctx.seed)
        sizes = torch.zeros(2, dtype=torch.long) if env is None else torch.tensor(_sizes(env))
        dist.broadcast(sizes, src=1)  # the learner has no env that it could ask
        model = Model(*sizes.tolist()).to(ctx.device)
        first, total = 0, ctx.max_iterations or agent_cfg["max_iterations"]
        optimizer = torch.optim.Adam(model.parameters(), agent_cfg["learning_rate"])
        if ctx.checkpoint is not None:
            state = _load(ctx.checkpoint, ctx.trust)
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            restore_random_state(state["random_state"])
            ctx.resumed(partial(_save, model, optimizer, state["iteration"]))
            first = state["iteration"] + 1
        elif ctx.init_from is not None:
            model.load_state_dict(_load(ctx.init_from, ctx.trust)["model"])
        frames = agent_cfg["horizon"] * ctx.num_envs
        ctx.started(horizon=agent_cfg["horizon"], frames_per_step=frames, first_iteration=first, max_iterations=total)
        work = Learner(model, optimizer, agent_cfg, ctx) if ctx.role == "learner" else Actor(model, agent_cfg, env)
        for iteration in range(first, total):
            _send_weights(model, ctx)
            work.do(iteration)
            path = ctx.log_dir / f"model_{iteration}.pt"
            save = partial(write_whole, path, partial(_save, model, optimizer, iteration))
            if ctx.rank == 0 and ((iteration + 1) % agent_cfg["save_interval"] == 0 or iteration == total - 1):
                save()
            ctx.iteration_finished(save)
        _send_weights(model, ctx)  # rlnb compares the actors' parameters
        return [model]

    def load_policy(self, env, agent_cfg, checkpoint, *, device, trust, deterministic=True):
        model = Model(*_sizes(env))
        model.load_state_dict(_load(checkpoint, trust)["model"])
        return model.to(device)


class Model(torch.nn.Module):
    def __init__(self, observations, actions):
        super().__init__()
        self.hidden = torch.nn.Sequential(torch.nn.Linear(observations, 64), torch.nn.ELU())
        self.mean, self.value = torch.nn.Linear(64, actions), torch.nn.Linear(64, 1)
        self.log_std = torch.nn.Parameter(torch.zeros(actions))

    def forward(self, obs):  # the policy in evaluations
        return self.mean(self.hidden(obs["policy"]))

    def reset(self, dones):
        pass

    def distribution(self, obs):
        return torch.distributions.Normal(self.mean(self.hidden(obs)), self.log_std.exp())


class Actor:
    def __init__(self, model, agent_cfg, env):
        self.model, self.horizon, self.env = model, agent_cfg["horizon"], env
        self.obs = env.reset()[0]["policy"].clone()

    @torch.no_grad()
    def do(self, iteration):
        rows = []
        for _ in range(self.horizon):
            action = self.model.distribution(self.obs).sample()
            obs, reward, terminated, truncated, _ = self.env.step(action)
            rows.append(torch.cat([self.obs, action, torch.stack([reward, terminated | truncated], 1)], 1))
            self.obs = obs["policy"].clone()
        rows.append(torch.nn.functional.pad(self.obs, (0, action.shape[1] + 2)))
        dist.send(torch.stack(rows).cpu(), dst=0)


class Learner:
    def __init__(self, model, optimizer, agent_cfg, ctx):
        self.model, self.optimizer, self.writer = model, optimizer, SummaryWriter(str(ctx.log_dir))
        self.actors, self.frames, self.time_s = ctx.world_size - 1, agent_cfg["horizon"] * ctx.num_envs, time.time()
        self.parts = [model.hidden[0].in_features, model.mean.out_features, 1, 1]  # obs, action, reward, end
        self.shape = (agent_cfg["horizon"] + 1, ctx.num_envs // self.actors, sum(self.parts))
        self.returns, self.scalars = torch.zeros(ctx.num_envs), {}

    def do(self, iteration):
        rollouts = torch.zeros(self.actors, *self.shape)
        for actor in range(self.actors):
            dist.recv(rollouts[actor], src=1 + actor)
        obs, action, reward, end = torch.cat([*rollouts], dim=1).split(self.parts, dim=2)
        value = self.model.value(self.model.hidden(obs))
        target, advantages = value[-1].detach(), []
        for step in reversed(range(len(obs) - 1)):
            target = reward[step] + DISCOUNT * (1 - end[step]) * target
            advantages.insert(0, target - value[step])
        advantage = torch.stack(advantages)
        log_prob = self.model.distribution(obs[:-1]).log_prob(action[:-1]).sum(2, keepdim=True)
        losses = {"policy": -(advantage.detach() * log_prob).mean(), "value": advantage.square().mean()}
        self.optimizer.zero_grad()
        sum(losses.values()).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        for step in range(len(obs) - 1):
            self.returns += reward[step, :, 0]
            if (ends := end[step, :, 0].bool()).any():
                self.scalars["Train/return"] = self.returns[ends].mean()
                self.returns[ends] = 0
        self.scalars |= {f"Loss/{name}": loss for name, loss in losses.items()}
        self.scalars["Perf/fps"], self.time_s = self.frames / (time.time() - self.time_s), time.time()
        for tag, scalar in self.scalars.items():
            self.writer.add_scalar(tag, scalar, iteration)
        self.writer.flush()


def _send_weights(model, ctx):
    for tensor in model.state_dict().values() if ctx.synchronised else ():
        weights = tensor.cpu()  # the learner is on the CPU, so the group of all ranks takes CPU tensors
        dist.broadcast(weights, src=0)
        tensor.copy_(weights)


def _sizes(env):
    raw = env.unwrapped
    return [raw.single_observation_space["policy"].shape[0], raw.single_action_space.shape[0]]


def _save(model, optimizer, iteration, path):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "random_state": random_state()}
    torch.save({**state, "iteration": iteration}, path)


def _load(checkpoint, trust):
    vet_checkpoint(checkpoint, trust)
    return torch.load(checkpoint, map_location="cpu", weights_only=not trust)
