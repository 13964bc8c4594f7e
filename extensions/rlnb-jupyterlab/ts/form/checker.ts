import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';

import type { Checked, Wish } from '../server/protocol';

/** Milliseconds without typing before the server checks the form. */
const PAUSE = 500;

export interface Verdict {
  readonly wish: Wish;
  readonly checked: Checked | null;
  readonly failure: unknown;
}

/** Has the server check the newest form, one at a time: a check takes seconds, and the verdict on an older form is useless. */
export class Checker implements IDisposable {
  constructor(private readonly _check: (wish: Wish) => Promise<Checked>) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The latest verdict, which may be about an older form. */
  get verdict(): Verdict | null {
    return this._verdict;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  ask(wish: Wish): void {
    this._newest = wish;
    clearTimeout(this._timer);
    this._timer = setTimeout(() => void this._run(), PAUSE);
  }

  dispose(): void {
    this._isDisposed = true;
    clearTimeout(this._timer);
    Signal.clearData(this);
  }

  private async _run(): Promise<void> {
    if (this._busy) {
      return;
    }
    this._busy = true;
    let wish: Wish | null = null;
    while (!this._isDisposed && wish !== this._newest) {
      wish = this._newest!;
      let verdict: Verdict;
      try {
        verdict = { wish, checked: await this._check(wish), failure: null };
      } catch (failure) {
        verdict = { wish, checked: null, failure };
      }
      this._verdict = verdict;
      this._changed.emit();
    }
    this._busy = false;
  }

  private readonly _changed = new Signal<this, void>(this);
  private _verdict: Verdict | null = null;
  private _newest: Wish | null = null;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _busy = false;
  private _isDisposed = false;
}
