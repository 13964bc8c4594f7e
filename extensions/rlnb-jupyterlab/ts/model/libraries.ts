import { type ISignal, Signal } from '@lumino/signaling';

import type { Registry } from '../server/protocol';

/** The features of the server's libraries, requested once. */
export class Libraries {
  constructor(private readonly _load: () => Promise<Registry['libraries']>) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Whether a library exports policies; true until the server has answered. */
  exports(name: string): boolean {
    return !this._silent.has(name);
  }

  async ask(): Promise<void> {
    if (this._asked) {
      return;
    }
    this._asked = true;
    try {
      const libraries = await this._load();
      this._silent = new Set(libraries.filter(({ exports }) => exports.length === 0).map(({ name }) => name));
      this._changed.emit();
    } catch (reason) {
      console.warn('The features of the libraries could not be loaded.', reason);
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private _silent: ReadonlySet<string> = new Set();
  private _asked = false;
}
