import type { Row } from '../server/protocol';

export function row(key: string, changes: Partial<Row> = {}): Row {
  return {
    key,
    id: key,
    name: '',
    task: 'Isaac-Cartpole-Direct',
    library: 'rsl_rl',
    launcher: 'local',
    device: 'cpu',
    state: 'completed',
    iteration: 10,
    total: 10,
    reward: 1,
    success: null,
    spark: [],
    eta_s: null,
    created: '2026-11-22T10:00:00+00:00',
    tags: [],
    arguments: {},
    metrics: {},
    reason: '',
    since: '',
    alerts: [],
    ...changes
  };
}

export const many = (count: number): Row[] =>
  Array.from({ length: count }, (_, i) =>
    row(`run-${i}`, {
      task: `Task-${i % 20}`,
      library: ['rsl_rl', 'skrl', 'rl_games', 'sb3'][i % 4]!,
      state: i % 100 === 0 ? 'running' : 'completed',
      arguments: { seed: i % 7, num_envs: 64 * (i % 3), 'agent.algorithm.learning_rate': 1e-4 * (1 + (i % 5)) },
      metrics: { fps: 1000 + i },
      tags: i % 3 === 0 ? ['sweep', `seed-${i % 5}`] : [],
      created: new Date(1_700_000_000_000 + 1000 * i).toISOString()
    })
  );
