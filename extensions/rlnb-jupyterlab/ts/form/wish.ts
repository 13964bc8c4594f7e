import type { TranslationBundle } from '@jupyterlab/translation';

import type { Wish } from '../server/protocol';
import { parsePairs } from './pairs';

/** The text of each field of the form, as the user typed it. */
export type Fields = { readonly [name in keyof Wish]: string };

/** A field with invalid text. */
export interface Wrong {
  readonly field: keyof Wish;
  readonly text: string;
}

export const BLANK: Fields = {
  task: '',
  library: '',
  num_envs: '',
  max_iterations: '',
  seed: '42',
  device: 'auto',
  nproc_per_node: '',
  launcher: 'local',
  overrides: '',
  agent_config: '',
  agent: ''
};

/** Returns the error of an invalid field. */
export function wrongWord({ field, text }: Wrong, trans: TranslationBundle): string {
  switch (field) {
    case 'overrides':
    case 'agent':
      return trans.__('Not name=value: line %1', text);
    case 'nproc_per_node':
      return trans.__('%1 is neither a whole number nor "auto".', text);
    default:
      return trans.__('%1 is not a whole number.', text);
  }
}

/** Returns the arguments that a form gives, without its invalid fields, and those fields. */
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
    const parsed = parsePairs(fields[field]);
    wrong.push(...parsed.wrong.map(text => ({ field, text })));
    return parsed.values;
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
    agent_config: fields.agent_config.trim(),
    agent: pairs('agent')
  };
  return { wish, wrong };
}
