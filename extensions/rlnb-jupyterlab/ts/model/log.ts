/** A terminal's sequences for colours and cursor movements, which a browser would show as noise. */
// eslint-disable-next-line no-control-regex
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
// eslint-disable-next-line no-control-regex
const UNFINISHED = /\u001b(?:\[[0-?]*[ -/]*|\][^\u0007\u001b]*)?$/;

/** Lines per block: views render a few blocks instead of each line. */
const BLOCK = 250;
/** Characters that are kept of a line, from its end. */
const LONGEST = 10_000;
/** Characters after which an unfinished escape sequence is dropped. */
const LONGEST_ESCAPE = 256;

export interface Block {
  readonly id: number;
  readonly text: string;
}

/** The last lines of a growing text. */
export class LogBuffer {
  constructor(readonly limit = 5000) {}

  /** Whether the first lines were dropped. */
  get cut(): boolean {
    return this._cut;
  }

  get lines(): number {
    return this._blocks.reduce((sum, block) => sum + block.lines.length, 0);
  }

  /** The blocks; unchanged blocks are the same objects as before. */
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
    // The end of a message may cut an escape sequence in two.
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

  /** Replaces the last line with the first of these, which continues it, and appends the others. */
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
  /** The unfinished last line. A carriage return at its end is kept until the text that overwrites the line arrives. */
  private _open = '';
  private _carry = '';
  private _cut = false;
}

/** Returns a line as a terminal shows it after carriage returns, such as the last state of a progress bar. */
function overwritten(line: string): string {
  const whole = line.replace(/\r+$/, '');
  return whole.slice(whole.lastIndexOf('\r') + 1);
}
