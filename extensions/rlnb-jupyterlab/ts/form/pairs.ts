import type { Value } from '../server/protocol';

export interface Pairs {
  readonly values: Readonly<Record<string, Value>>;
  /** Lines that are no pair, as "3: text". */
  readonly wrong: readonly string[];
}

const WORDS: Readonly<Record<string, Value>> = { True: true, False: false, None: null };

/** A value as people type it: what is JSON is that, Python's three words too, all else is a string. */
function parseValue(text: string): Value {
  if (Object.hasOwn(WORDS, text)) {
    return WORDS[text]!;
  }
  try {
    return JSON.parse(text) as Value;
  } catch {
    const quoted = /^'(.*)'$/.exec(text);
    return quoted ? quoted[1]! : text;
  }
}

/** Lines of name=value; empty lines and comments are passed over, a later line wins. */
export function parsePairs(text: string): Pairs {
  const values: Record<string, Value> = {};
  const wrong: string[] = [];
  text.split('\n').forEach((raw, index) => {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) {
      return;
    }
    const at = line.indexOf('=');
    const name = line.slice(0, at).trim();
    const rest = line.slice(at + 1).trim();
    if (at < 1 || name === '' || rest === '' || /\s/.test(name)) {
      wrong.push(`${index + 1}: ${line}`);
    } else {
      values[name] = parseValue(rest);
    }
  });
  return { values, wrong };
}
