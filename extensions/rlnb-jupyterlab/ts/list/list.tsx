import { defaultRangeExtractor, type Range, useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, type MouseEvent, type ReactElement, useCallback, useEffect, useId, useMemo, useRef } from 'react';

import { differences, lastName } from '../model/fields';
import type { Line, Query } from '../model/query';
import { stateWord } from '../parts/dot';
import { useSignal } from '../parts/signal';
import { useDesk } from '../parts/view';
import { Cells, Head, widthOf } from './cells';
import { RunLine, spoken } from './runline';

const NOTHING: ReadonlyMap<string, string> = new Map();

/** Pixels, as in the style sheet. With fixed heights no line is measured, and ten thousand lines scroll like ten. */
const HEIGHTS = { run: 46, group: 26 };
/** Pixels of a line of the table, and of its head. */
const CELLS = 26;

interface Props {
  readonly lines: readonly Line[];
  readonly query: Query;
  /** Fields of the table's columns; without them, each run is described in two lines. */
  readonly columns?: readonly string[];
}

/** The list, or the table. Only the lines in view are drawn. */
export function List({ lines, query, columns }: Props): ReactElement {
  const { listing, commands, preferences, trans } = useDesk();
  const differing = useMemo(
    () => (columns ? NOTHING : differences(lines.flatMap(line => (line.kind === 'run' ? [line.row] : [])))),
    [lines, columns]
  );
  useSignal(listing.changed, () => listing.version);
  const sparkline = useSignal(preferences.changed, () => preferences.sparklines);
  const scrolled = useRef<HTMLDivElement>(null);
  const base = useId();
  const { active, selected } = listing;
  const at = lines.findIndex(line => line.id === active);
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scrolled.current,
    estimateSize: index => (columns ? CELLS : HEIGHTS[lines[index]!.kind]),
    scrollPaddingStart: columns ? CELLS : 0,
    // A new function makes the virtualizer forget the heights of the previous lines.
    getItemKey: useCallback((index: number) => lines[index]!.id, [lines]),
    overscan: 6,
    // The active line is always drawn, even out of view: `aria-activedescendant` refers to its element.
    rangeExtractor: (range: Range) => {
      const seen = defaultRangeExtractor(range);
      return at < 0 || seen.includes(at) ? seen : [...seen, at].sort((a, b) => a - b);
    }
  });

  useEffect(() => {
    if (at >= 0) {
      virtualizer.scrollToIndex(at);
    }
    // The view follows the active line only when another line becomes active, not when other lines come and go.
  }, [active]);

  // The result of a new query is shown from its top.
  useEffect(() => virtualizer.scrollToOffset(0), [query]);

  const open = () => void commands.execute('rlnb:open', { of: 'selection' });

  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((scrolled.current?.clientHeight ?? 0) / HEIGHTS.run) - 1);
    const steps: Record<string, number> = {
      ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -lines.length, End: lines.length
    };
    const line = lines[at];
    const step = steps[event.key];
    if (step !== undefined) {
      listing.move(lines, step, event.shiftKey ? 'range' : 'only');
    } else if (event.key === 'a' && (event.ctrlKey || event.metaKey)) {
      listing.chooseAll(lines);
    } else if (event.key === 'Escape') {
      listing.chooseNone();
    } else if (event.key === 'F2' && selected.size === 1) {
      void commands.execute('rlnb:rename', { of: 'selection' });
    } else if (event.key === 'Delete' && selected.size > 0) {
      void commands.execute('rlnb:delete', { of: 'selection' });
    } else if (line?.kind === 'group' && foldsWith(event.key, line.open)) {
      listing.fold(line.id);
    } else if (line?.kind === 'run' && event.key === ' ') {
      listing.choose(lines, line.id, 'toggle');
    } else if (line?.kind === 'run' && event.key === 'Enter') {
      open();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  const onClick = (line: Line, event: MouseEvent) => {
    if (line.kind === 'group') {
      listing.fold(line.id);
    } else if (event.shiftKey) {
      listing.choose(lines, line.id, 'range');
    } else {
      const toggles = event.ctrlKey || event.metaKey || event.target instanceof HTMLInputElement;
      listing.choose(lines, line.id, toggles ? 'toggle' : 'only');
    }
  };

  return (
    <div
      ref={scrolled}
      className={columns ? 'rlnb-List rlnb-RunTable' : 'rlnb-List'}
      role="tree"
      aria-label={trans.__('RL runs')}
      aria-multiselectable="true"
      aria-activedescendant={at >= 0 ? `${base}${at}` : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      {columns && <Head columns={columns} />}
      <div
        className="rlnb-List-content"
        role="presentation"
        style={{ height: virtualizer.getTotalSize(), ...(columns ? { width: widthOf(columns), minWidth: '100%' } : {}) }}
      >
        {virtualizer.getVirtualItems().map(({ index, start, key }) => {
          const line = lines[index]!;
          const chosen = line.kind === 'run' && selected.has(line.row.key);
          const group = line.kind === 'group';
          const name = group ? groupName(line.id, line.name) : '';
          return (
            <div
              key={key}
              id={`${base}${index}`}
              className={group ? 'rlnb-Group' : 'rlnb-Run'}
              role="treeitem"
              aria-setsize={lines.length}
              aria-posinset={index + 1}
              aria-level={line.kind === 'run' && line.group !== null ? 2 : 1}
              aria-expanded={group ? line.open : undefined}
              aria-selected={group ? undefined : chosen}
              aria-label={group ? trans.__('%1, %2 runs', name, line.count) : spoken(line.row, trans)}
              data-active={line.id === active}
              data-key={group ? undefined : line.row.key}
              style={{ transform: `translateY(${start}px)` }}
              onClick={event => onClick(line, event)}
              onDoubleClick={event => !group && !(event.target instanceof HTMLInputElement) && open()}
              onContextMenu={() => !group && !chosen && listing.choose(lines, line.id, 'only')}
            >
              {group ? (
                <>
                  <span className="rlnb-Group-fold" data-open={line.open} aria-hidden="true" />
                  <span className="rlnb-Group-name">{name}</span>
                  <span className="rlnb-Group-count">{line.count}</span>
                </>
              ) : columns ? (
                <Cells row={line.row} selected={chosen} columns={columns} />
              ) : (
                <RunLine
                  row={line.row}
                  differing={differing.get(line.row.key) ?? ''}
                  selected={chosen}
                  sparkline={sparkline}
                  trans={trans}
                />
              )}
            </div>
          );
        })}
      </div>
    </div>
  );

  function groupName(id: string, name: string): string {
    const missing = id.startsWith('tag:') ? trans.__('untagged') : trans.__('none');
    const field = id.startsWith('arg:') || id.startsWith('metric:') ? `${lastName(query.group)} ` : '';
    return id.startsWith('state:') ? stateWord(name, trans) : field + (name || missing);
  }
}

function foldsWith(key: string, open: boolean): boolean {
  return key === 'Enter' || key === ' ' || (key === 'ArrowLeft' && open) || (key === 'ArrowRight' && !open);
}
