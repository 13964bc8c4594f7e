import type { TranslationBundle } from '@jupyterlab/translation';

import type { Field, Value, Wish } from '../server/protocol';
import { parsePairs } from './pairs';

/** The text of each field of the form, as the user typed it. */
export type Fields = Readonly<Record<string, string>>;

/** A field with invalid text. */
export interface Wrong {
  readonly field: string;
  readonly text: string;
}

/** The fields that the form declares itself. */
export const BLANK: Fields = { task: '', library: '', launcher: 'local', overrides: '', agent_config: '', agent: '' };

/** Returns the error of an invalid field. */
export function wrongWord({ field, text }: Wrong, declared: readonly Field[], trans: TranslationBundle): string {
  const choices = declared.find(({ name }) => name === field)?.choices;
  if (!choices) {
    return trans.__('Not name=value: line %1', text);
  }
  return choices.length > 0 ? trans.__('%1 is neither a whole number nor "%2".', text, choices.join('", "')) : trans.__('%1 is not a whole number.', text);
}

/** Returns the arguments that a form gives, without its invalid fields, and those fields. */
export function wishOf(fields: Fields, declared: readonly Field[]): { readonly wish: Wish; readonly wrong: readonly Wrong[] } {
  const wrong: Wrong[] = [];
  const text = (name: string) => (fields[name] ?? '').trim();
  const value = ({ name, whole, choices, several, default: first }: Field): Value => {
    const typed = (fields[name] ?? first).trim();
    if (several) {
      return typed
        .split(',')
        .map(part => part.trim())
        .filter(part => part !== '');
    }
    if (typed === '' || !whole || choices.includes(typed)) {
      return typed || null;
    }
    if (/^-?\d+$/.test(typed)) {
      return Number(typed);
    }
    wrong.push({ field: name, text: typed });
    return null;
  };
  const pairs = (name: string) => {
    const parsed = parsePairs(fields[name] ?? '');
    wrong.push(...parsed.wrong.map(line => ({ field: name, text: line })));
    return parsed.values;
  };
  const wish: Wish = {
    task: text('task'),
    library: text('library'),
    launcher: text('launcher'),
    agent_config: text('agent_config'),
    ...Object.fromEntries(declared.map(field => [field.name, value(field)])),
    overrides: pairs('overrides'),
    agent: pairs('agent')
  };
  return { wish, wrong };
}
