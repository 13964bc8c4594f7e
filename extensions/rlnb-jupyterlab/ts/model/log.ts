/** Colours and cursor movements of a terminal: a browser shows them as noise. */
// eslint-disable-next-line no-control-regex
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
// eslint-disable-next-line no-control-regex
const UNFINISHED = /\u001b(?:\[[0-?]*[ -/]*|\][^\u0007\u001b]*)?$/;

/** So many lines at a time come and go, so that a view renders a few blocks and not each line. */
const BLOCK = 250;
/** Letters of a line, and of an escape sequence, beyond which no end is waited for. */
const LONGEST = 10_000;
const LONGEST_ESCAPE = 256;

export interface Block {
  readonly id: number;
  readonly text: string;
}

/** The last lines of a growing text. */
export class LogBuffer {
  constructor(readonly limit = 5000) {}

  /** Whether the beginning was let go. */
  get cut(): boolean {
    return this._cut;
  }

  get lines(): number {
    return this._blocks.reduce((sum, block) => sum + block.lines.length, 0);
  }

  /** Blocks that did not change are the same objects as before. */
  get blocks(): readonly Block[] {
    return this._blocks.map(block => (block.shown ??= { id: block.id, text: block.lines.join('\n') }));
  }

  get text(): string {
    return this.blocks.map(block => block.text).join('\n');
  }

  clear(): void {
    this._blocks = [];
    this._open = '';
    this._cut = false;
  }

  append(text: string): void {
    let fresh = this._carry + text;
    // An escape sequence may be cut in two by the message's end.
    this._carry = UNFINISHED.exec(fresh)?.[0] ?? '';
    if (this._carry.length > LONGEST_ESCAPE) {
      this._carry = '';
    }
    fresh = fresh.slice(0, fresh.length - this._carry.length).replace(ESCAPES, '');
    if (fresh === '') {
      return;
    }
    const parts = fresh.replace(/\r\n/g, '\n').split('\n');
    parts[0] = this._open + parts[0]!;
    const drawn = parts.map(part => overwritten(part).slice(-LONGEST));
    const last = parts[parts.length - 1]!;
    this._open = overwritten(last).slice(-LONGEST) + (last.endsWith('\r') ? '\r' : '');
    this._replaceLast(drawn);
    this._bound();
  }

  /** The first line goes on where the last one stopped. */
  private _replaceLast(lines: readonly string[]): void {
    let last = this._blocks[this._blocks.length - 1];
    last?.lines.pop();
    for (const line of lines) {
      if (!last || last.lines.length >= BLOCK) {
        last = { id: this._next++, lines: [], shown: null };
        this._blocks.push(last);
      }
      last.lines.push(line);
      last.shown = null;
    }
  }

  private _bound(): void {
    let lines = this.lines;
    while (this._blocks.length > 1 && lines - this._blocks[0]!.lines.length >= this.limit) {
      lines -= this._blocks.shift()!.lines.length;
      this._cut = true;
    }
  }

  private _blocks: { id: number; lines: string[]; shown: Block | null }[] = [];
  private _next = 0;
  /** The last line, whose rest is still to come; a carriage return at its end waits for what overwrites it. */
  private _open = '';
  private _carry = '';
  private _cut = false;
}

/** A progress bar writes its line again and again; a terminal shows the last. */
function overwritten(line: string): string {
  const whole = line.replace(/\r+$/, '');
  return whole.slice(whole.lastIndexOf('\r') + 1);
}
