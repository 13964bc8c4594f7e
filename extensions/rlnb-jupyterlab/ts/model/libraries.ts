import { type ISignal, Signal } from '@lumino/signaling';

import type { Registry } from '../server/protocol';

/** What the libraries of this server can do; asked once, by whoever needs it first. */
export class Libraries {
  constructor(private readonly _load: () => Promise<Registry['libraries']>) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Whether a library exports policies; it may while nobody knows. */
  exports(name: string): boolean {
    return !this._silent.has(name);
  }

  async ask(): Promise<void> {
    if (this._asked) {
      return;
    }
    this._asked = true;
    try {
      const found = await this._load();
      this._silent = new Set(found.filter(({ exports }) => exports.length === 0).map(({ name }) => name));
      this._changed.emit();
    } catch (reason) {
      console.warn('What the libraries can do is not known.', reason);
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private _silent: ReadonlySet<string> = new Set();
  private _asked = false;
}
