import type { TranslationBundle } from '@jupyterlab/translation';

import { lastName } from '../model/fields';

/** The heading of a field, see `valueOf`. */
export function fieldWord(field: string, trans: TranslationBundle): string {
  const words: Record<string, string> = {
    name: trans.__('name'),
    task: trans.__('task'),
    library: trans.__('library'),
    launcher: trans.__('launcher'),
    device: trans.__('device'),
    state: trans.__('state'),
    iteration: trans.__('iteration'),
    reward: trans.__('reward'),
    success: trans.__('success'),
    created: trans.__('created'),
    tags: trans.__('tags')
  };
  return words[field] ?? lastName(field);
}
