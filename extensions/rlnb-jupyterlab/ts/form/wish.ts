import type { TranslationBundle } from '@jupyterlab/translation';

import type { Wish } from '../server/protocol';
import { parsePairs } from './pairs';

/** A form as it is typed: all of it text. */
export type Fields = { readonly [name in keyof Wish]: string };

/** A field whose text is not what it has to be. */
export interface Wrong {
  readonly field: keyof Wish;
  readonly text: string;
}

export const BLANK: Fields = {
  task: '',
  library: 'rsl_rl',
  num_envs: '',
  max_iterations: '',
  seed: '42',
  device: 'auto',
  nproc_per_node: '',
  launcher: 'local',
  overrides: '',
  agent: ''
};

/** What is wrong with a field. */
export function wrongWord({ field, text }: Wrong, trans: TranslationBundle): string {
  switch (field) {
    case 'overrides':
    case 'agent':
      return trans.__('This is not name=value: line %1', text);
    case 'nproc_per_node':
      return trans.__('%1 is neither a whole number nor "auto".', text);
    default:
      return trans.__('%1 is not a whole number.', text);
  }
}

/** What a form asks for. What is wrong in it is left out of that, and said. */
export function wishOf(fields: Fields): { readonly wish: Wish; readonly wrong: readonly Wrong[] } {
  const wrong: Wrong[] = [];
  const whole = (field: 'num_envs' | 'max_iterations' | 'seed' | 'nproc_per_node'): number | null => {
    const text = fields[field].trim();
    if (text === '') {
      return null;
    }
    if (/^-?\d+$/.test(text)) {
      return Number(text);
    }
    wrong.push({ field, text });
    return null;
  };
  const pairs = (field: 'overrides' | 'agent') => {
    const found = parsePairs(fields[field]);
    wrong.push(...found.wrong.map(text => ({ field, text })));
    return found.values;
  };
  const wish: Wish = {
    task: fields.task.trim(),
    library: fields.library,
    num_envs: whole('num_envs'),
    max_iterations: whole('max_iterations'),
    seed: whole('seed'),
    device: fields.device.trim(),
    nproc_per_node: fields.nproc_per_node.trim() === 'auto' ? 'auto' : whole('nproc_per_node'),
    launcher: fields.launcher.trim(),
    overrides: pairs('overrides'),
    agent: pairs('agent')
  };
  return { wish, wrong };
}
