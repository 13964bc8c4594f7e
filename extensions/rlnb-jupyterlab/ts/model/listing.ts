import { type ISignal, Signal } from '@lumino/signaling';

import type { Row } from '../server/protocol';
import { FIELDS } from './fields';
import { EVERYTHING, GROUPINGS, type Line, type Query, select } from './query';
import type { Runs } from './runs';

/** How a click or a key changes the selection. */
export type Choice = 'only' | 'toggle' | 'range';

/** The columns of the table until the user chooses others. */
const COLUMNS: readonly string[] = ['name', 'task', 'library', 'state', 'iteration', 'reward', 'success', 'arg:seed', 'created', 'tags'];
/** Fields whose largest values are looked for first. */
const DESCENDING: readonly string[] = ['reward', 'success', 'iteration', 'created'];

const isField = (name: string): boolean => (FIELDS as readonly string[]).includes(name) || /^(arg|metric):./.test(name);

/** The query and the selection of the list. They outlive the widget that draws the list. */
export class Listing {
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get version(): number {
    return this._version;
  }

  get query(): Query {
    return this._query;
  }

  /** Ids of the folded groups. */
  get closed(): ReadonlySet<string> {
    return this._closed;
  }

  /** Keys of the selected runs. */
  get selected(): ReadonlySet<string> {
    return this._selected;
  }

  /** The selected runs that match the query: no command acts on a run that the list does not show. */
  rows(runs: Runs): readonly Row[] {
    return select([...this._selected].flatMap(key => runs.get(key) ?? []), this._query);
  }

  /** The selected runs, or all runs that the list shows if none is selected; newest first. */
  rowsOrAll(runs: Runs): readonly Row[] {
    const all = select(runs.newestFirst, this._query);
    const chosen = all.filter(({ key }) => this._selected.has(key));
    return chosen.length > 0 ? chosen : all;
  }

  /** Id of the line that the keyboard acts on. */
  get active(): string | null {
    return this._active;
  }

  ask(changes: Partial<Query>): void {
    this._query = { ...this._query, ...changes };
    this._tell();
  }

  /** Folds or unfolds a group. */
  fold(group: string): void {
    const closed = new Set(this._closed);
    if (!closed.delete(group)) {
      closed.add(group);
    }
    this._closed = closed;
    this._active = group;
    this._tell();
  }

  choose(lines: readonly Line[], id: string, choice: Choice): void {
    const line = lines.find(candidate => candidate.id === id);
    if (!line) {
      return;
    }
    this._active = id;
    if (choice === 'range') {
      this._selected = new Set(this._between(lines, this._anchor ?? id, id));
    } else {
      this._anchor = id;
      if (line.kind === 'group') {
        this._selected = choice === 'only' ? new Set() : this._selected;
      } else if (choice === 'only') {
        this._selected = new Set([line.row.key]);
      } else {
        const selected = new Set(this._selected);
        if (!selected.delete(line.row.key)) {
          selected.add(line.row.key);
        }
        this._selected = selected;
      }
    }
    this._tell();
  }

  chooseAll(lines: readonly Line[]): void {
    this._selected = new Set(lines.flatMap(line => (line.kind === 'run' ? [line.row.key] : [])));
    this._tell();
  }

  chooseNone(): void {
    this._selected = new Set();
    this._tell();
  }

  /** Moves the active line `by` lines down, or up if negative. The selection moves with it, or grows. */
  move(lines: readonly Line[], by: number, choice: 'only' | 'range'): void {
    if (lines.length === 0) {
      return;
    }
    const at = lines.findIndex(line => line.id === this._active);
    const to = at < 0 ? (by > 0 ? 0 : lines.length - 1) : Math.min(lines.length - 1, Math.max(0, at + by));
    this.choose(lines, lines[to]!.id, choice);
  }

  /** Names of the fields that the table of runs shows, in their order. */
  get columns(): readonly string[] {
    return this._columns;
  }

  /** Shows a column of the table, or hides it. */
  toggle(field: string): void {
    this._columns = this._columns.includes(field) ? this._columns.filter(name => name !== field) : [...this._columns, field];
    this._tell();
  }

  /** Sorts by a field; by the same field in the other direction. */
  sortBy(field: string): void {
    const { sort, descending } = this._query;
    this.ask({ sort: field, descending: sort === field ? !descending : DESCENDING.includes(field) || field.startsWith('metric:') });
  }

  toJSON(): Record<string, string | boolean | string[]> {
    return { ...this._query, closed: [...this._closed], columns: [...this._columns] };
  }

  /** Restores the state that this or another version of the extension has saved. */
  restore(saved: unknown): void {
    const fields = (saved ?? {}) as Record<string, unknown>;
    const text = (name: Exclude<keyof Query, 'descending'>): string =>
      typeof fields[name] === 'string' ? (fields[name] as string) : EVERYTHING[name];
    const group = text('group');
    const texts = (name: string): readonly string[] | null =>
      Array.isArray(fields[name]) ? (fields[name] as unknown[]).filter(value => typeof value === 'string') : null;
    this._query = {
      text: text('text'),
      state: text('state'),
      task: text('task'),
      library: text('library'),
      group: (GROUPINGS as readonly string[]).includes(group) || isField(group) ? group : 'none',
      sort: isField(text('sort')) ? text('sort') : EVERYTHING.sort,
      descending: fields['descending'] !== false
    };
    this._closed = new Set(texts('closed') ?? []);
    this._columns = texts('columns')?.filter(isField) ?? COLUMNS;
    this._tell();
  }

  private _between(lines: readonly Line[], a: string, b: string): string[] {
    const at = [a, b].map(id => lines.findIndex(line => line.id === id)).sort((i, j) => i - j);
    // If the anchor is filtered out, the range is the line alone.
    const [first, last] = [at[0]! < 0 ? at[1]! : at[0]!, at[1]!];
    return lines.slice(first, last + 1).flatMap(line => (line.kind === 'run' ? [line.row.key] : []));
  }

  private _tell(): void {
    this._version += 1;
    this._changed.emit();
  }

  private readonly _changed = new Signal<this, void>(this);
  private _columns: readonly string[] = COLUMNS;
  private _version = 0;
  private _query: Query = EVERYTHING;
  private _closed: ReadonlySet<string> = new Set();
  private _selected: ReadonlySet<string> = new Set();
  private _active: string | null = null;
  private _anchor: string | null = null;
}
