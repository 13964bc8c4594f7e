import type { Value } from '../server/protocol';

export interface Pairs {
  readonly values: Readonly<Record<string, Value>>;
  /** Lines that are not name=value, each with its number: "3: text". */
  readonly wrong: readonly string[];
}

const LITERALS: Readonly<Record<string, Value>> = { True: true, False: false, None: null };

/** Reads a typed value: JSON, Python's True, False or None, or else a string, with or without single quotes. */
function parseValue(text: string): Value {
  if (Object.hasOwn(LITERALS, text)) {
    return LITERALS[text]!;
  }
  try {
    return JSON.parse(text) as Value;
  } catch {
    const quoted = /^'(.*)'$/.exec(text);
    return quoted ? quoted[1]! : text;
  }
}

/** Reads lines of name=value. Empty lines and comments are skipped; for a repeated name the last line wins. */
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
