import { type ISignal, Signal } from '@lumino/signaling';

import type { CurvesMessage, Points } from '../server/protocol';

/** Maximum number of points of a curve, about twice as many as a plot has pixels. */
const LIMIT = 4000;

/** One growing curve. Within an epoch points are only appended; after a new epoch the whole curve has to be redrawn. */
export class Curve {
  constructor(readonly limit = LIMIT) {}

  readonly x: number[] = [];
  readonly y: (number | null)[] = [];
  epoch = 0;
  /** The least and the greatest value since the last reset, including points that were thinned out. */
  low = Infinity;
  high = -Infinity;

  get length(): number {
    return this.x.length;
  }

  reset(): void {
    this.x.length = 0;
    this.y.length = 0;
    this.low = Infinity;
    this.high = -Infinity;
    this.epoch += 1;
  }

  append(points: Points): void {
    const count = Math.min(points.x.length, points.y.length);
    for (let i = 0; i < count; i++) {
      const y = points.y[i]!;
      this.x.push(points.x[i]!);
      this.y.push(y);
      if (y !== null) {
        this.low = Math.min(this.low, y);
        this.high = Math.max(this.high, y);
      }
    }
    if (this.length > this.limit) {
      this._thin();
    }
  }

  /** Keeps of each four points in the older half the least and the greatest: peaks remain, and the newer half is exact. */
  private _thin(): void {
    while (this.length > this.limit) {
      const half = Math.floor(this.length / 2);
      const kept: number[] = [];
      for (let i = 0; i < half; i += 4) {
        kept.push(...this._extremes(i, Math.min(i + 4, half)));
      }
      const x = [...kept.map(i => this.x[i]!), ...this.x.slice(half)];
      const y = [...kept.map(i => this.y[i]!), ...this.y.slice(half)];
      this.x.splice(0, Infinity, ...x);
      this.y.splice(0, Infinity, ...y);
    }
    this.epoch += 1;
  }

  private _extremes(from: number, to: number): number[] {
    let low = from;
    let high = from;
    for (let i = from + 1; i < to; i++) {
      const value = this.y[i] ?? NaN;
      if (!(value >= (this.y[low] ?? NaN))) {
        low = i;
      }
      if (!(value <= (this.y[high] ?? NaN))) {
        high = i;
      }
    }
    return low === high ? [low] : [Math.min(low, high), Math.max(low, high)];
  }
}

/** The curves of the runs that views watch. */
export class Curves {
  /** Emitted with the key of the run whose curves grew. */
  get changed(): ISignal<this, string> {
    return this._changed;
  }

  of(key: string): ReadonlyMap<string, Curve> {
    return this._runs.get(key) ?? NONE;
  }

  apply(message: CurvesMessage): void {
    let run = this._runs.get(message.key);
    if (!run) {
      this._runs.set(message.key, (run = new Map<string, Curve>()));
    }
    if (message.reset) {
      for (const [name, curve] of run) {
        if (Object.hasOwn(message.series, name)) {
          curve.reset();
        } else {
          run.delete(name);
        }
      }
    }
    for (const [name, points] of Object.entries(message.series)) {
      let curve = run.get(name);
      if (!curve) {
        run.set(name, (curve = new Curve()));
      }
      curve.append(points);
    }
    this._changed.emit(message.key);
  }

  /** Forgets the curves of all other runs. If one of them is watched again, the server sends its curves from the start. */
  keep(keys: ReadonlySet<string>): void {
    for (const key of this._runs.keys()) {
      if (!keys.has(key)) {
        this._runs.delete(key);
      }
    }
  }

  private readonly _runs = new Map<string, Map<string, Curve>>();
  private readonly _changed = new Signal<this, string>(this);
}

const NONE: ReadonlyMap<string, Curve> = new Map();
