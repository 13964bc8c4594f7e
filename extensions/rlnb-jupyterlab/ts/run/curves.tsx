import { type ReactElement, type RefObject, useEffect, useReducer, useRef, useState } from 'react';

import { Chart, DASHES, type Line, type Plotly } from '../../../../rlnb/curves/chart.js';
import { found, MOST_FOUND, sectionsOf } from '../model/metrics';
import { Failure } from '../parts/failure';
import { number } from '../model/format';
import { lineColours, lineStyle } from '../parts/palette';
import { useDesk, useShown } from '../parts/view';
import { refusalOf, type Refusal } from '../server/server';

/** The metrics that most users look at first. */
const FIRST = ['reward', 'success_rate', 'episode_length'];

function inOrder(a: string, b: string): number {
  const place = (name: string) => (FIRST.indexOf(name) + FIRST.length + 1) % (FIRST.length + 1);
  return place(a) - place(b) || a.localeCompare(b);
}

/** Plotly, loaded when the first curve is shown, since it is the larger part of this extension. */
let library: Promise<Plotly> | null = null;

function usePlotly(): { plotly: Plotly | null; failure: Refusal | null } {
  const [state, setState] = useState<{ plotly: Plotly | null; failure: Refusal | null }>({ plotly: null, failure: null });
  useEffect(() => {
    library ??= import('plotly.js-basic-dist-min').then(module => module.default);
    library.then(
      plotly => setState({ plotly, failure: null }),
      (reason: unknown) => {
        library = null;
        setState({ plotly: null, failure: refusalOf(reason) });
      }
    );
  }, []);
  return state;
}

/** Counts the frames in which curves of these runs have grown. */
function useGrowth(keys: readonly string[]): number {
  const { hub } = useDesk();
  const [growth, grow] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    let frame = 0;
    const note = (_: unknown, key: string) => {
      if (keys.includes(key) && frame === 0) {
        frame = requestAnimationFrame(() => {
          frame = 0;
          grow();
        });
      }
    };
    hub.curves.changed.connect(note);
    return () => {
      hub.curves.changed.disconnect(note);
      cancelAnimationFrame(frame);
    };
  }, [hub, keys]);
  return growth;
}

/** Counts the changes of theme, since the charts have to read the colours again after each. */
function useThemes(): number {
  const { themes } = useDesk();
  const [count, change] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    themes?.themeChanged.connect(change);
    return () => void themes?.themeChanged.disconnect(change);
  }, [themes]);
  return count;
}

/** The curves of one run, or of several over each other: a small chart for each metric, updated while the view is visible. */
export function CurvesView({ keys, names }: { keys: readonly string[]; names: readonly string[] }): ReactElement {
  const { hub, trans } = useDesk();
  const shown = useShown();
  const growth = useGrowth(keys);
  const theme = useThemes();
  const { plotly, failure } = usePlotly();
  const [filter, setFilter] = useState('');
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [smoothing, setSmoothing] = useState(0);
  const [log, setLog] = useState(false);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const metrics = useRef<readonly string[]>([]);
  const further = useRef<readonly string[]>([]);

  // A hidden tab drops its curves and receives them again when it is shown. Until then the charts stay.
  const received = [...new Set(keys.flatMap(key => [...hub.curves.of(key).keys()]))];
  if (received.length > 0) {
    further.current = [...new Set(keys.flatMap(key => hub.curves.names(key)))];
    const later = new Set(further.current);
    metrics.current = received.filter(metric => !later.has(metric)).sort(inOrder);
  }
  const wanted = found(metrics.current, filter);
  const matches = found(further.current, filter);
  const sections = sectionsOf(matches);
  // Only what is shown is requested. A filter unfolds what it finds.
  const unfolded = filter ? matches.slice(0, MOST_FOUND) : sections.filter(({ name }) => open.has(name)).flatMap(({ metrics }) => metrics);
  const requested = unfolded.join('\n');

  useEffect(() => {
    if (shown) {
      const watched = hub.watch(keys, requested.split('\n').filter(Boolean));
      return () => watched.dispose();
    }
    return;
  }, [hub, keys, shown, requested]);

  const toggle = (key: string) => setHidden(toggled(hidden, key));
  const charts = (names_: readonly string[]) => (
    <div className="rlnb-Charts">
      {plotly &&
        names_.map(metric => (
          <ChartView key={metric} {...{ plotly, metric, keys, names, hidden, growth, theme, smoothing, log }} />
        ))}
    </div>
  );

  return (
    <div className="rlnb-Scroll">
      <Failure of={failure} />
      <div className="rlnb-Curves-head">
        <input
          type="search"
          className="jp-mod-styled"
          placeholder={trans.__('Filter metrics')}
          aria-label={trans.__('Filter metrics')}
          value={filter}
          onChange={event => setFilter(event.target.value)}
        />
        <label>
          {trans.__('Smoothing')}
          <input
            type="range"
            min="0"
            max="0.99"
            step="0.01"
            value={smoothing}
            onChange={event => setSmoothing(Number(event.target.value))}
          />
        </label>
        <label>
          <input type="checkbox" checked={log} onChange={event => setLog(event.target.checked)} />
          {trans.__('Log scale')}
        </label>
        {keys.length > 1 && <Legend keys={keys} names={names} hidden={hidden} theme={theme} onToggle={toggle} />}
      </div>
      {metrics.current.length === 0 && <p className="rlnb-Empty">{trans.__('No curves have been logged yet.')}</p>}
      {charts(wanted)}
      {sections.map(section => {
        const isOpen = filter !== '' || open.has(section.name);
        const shownHere = filter ? section.metrics.filter(metric => unfolded.includes(metric)) : section.metrics;
        return (
          <section key={section.name} className="rlnb-Metrics">
            <button aria-expanded={isOpen} onClick={() => setOpen(toggled(open, section.name))}>
              <span className="rlnb-Group-fold" data-open={isOpen} aria-hidden="true" />
              {section.name || trans.__('Others')}
              <span className="rlnb-Group-count">{section.metrics.length}</span>
            </button>
            {isOpen && charts(shownHere)}
          </section>
        );
      })}
      {filter && matches.length > MOST_FOUND && <p>{trans.__('%1 more metrics match.', matches.length - MOST_FOUND)}</p>}
      {filter && wanted.length + matches.length === 0 && metrics.current.length > 0 && (
        <p className="rlnb-Empty">{trans.__('No metric matches.')}</p>
      )}
    </div>
  );
}

function toggled(names: ReadonlySet<string>, name: string): ReadonlySet<string> {
  const now = new Set(names);
  if (!now.delete(name)) {
    now.add(name);
  }
  return now;
}

/** Returns the theme's colours of lines, read again after each change of theme. */
function useColours(node: RefObject<HTMLElement>, theme: number): readonly string[] {
  const [colours, setColours] = useState<readonly string[]>([]);
  useEffect(() => setColours(node.current ? lineColours(node.current) : []), [theme]);
  return colours;
}

interface LegendProps {
  readonly keys: readonly string[];
  readonly names: readonly string[];
  readonly hidden: ReadonlySet<string>;
  readonly theme: number;
  onToggle(key: string): void;
}

function Legend({ keys, names, hidden, theme, onToggle }: LegendProps): ReactElement {
  const { hub, trans } = useDesk();
  const node = useRef<HTMLDivElement>(null);
  const colours = useColours(node, theme);
  return (
    <div ref={node} className="rlnb-Legend" role="group" aria-label={trans.__('Runs shown')}>
      {keys.map((key, i) => {
        const style = lineStyle(colours, i);
        return (
          <button key={key} title={hub.runs.last(key)?.id} aria-pressed={!hidden.has(key)} onClick={() => onToggle(key)}>
            <svg width="20" height="8" aria-hidden="true">
              <line x2="20" y1="4" y2="4" stroke={style.color} strokeWidth="2" strokeDasharray={DASHES[style.dash]} />
            </svg>
            {names[i] ?? key}
          </button>
        );
      })}
    </div>
  );
}

interface ChartProps {
  readonly plotly: Plotly;
  readonly metric: string;
  readonly keys: readonly string[];
  readonly names: readonly string[];
  readonly hidden: ReadonlySet<string>;
  readonly growth: number;
  readonly theme: number;
  readonly smoothing: number;
  readonly log: boolean;
}

/** One chart, drawn only while it is in view or near it. */
function ChartView({ plotly, metric, keys, names, hidden, growth, theme, smoothing, log }: ChartProps): ReactElement {
  const { hub, trans } = useDesk();
  const node = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  const [seen, setSeen] = useState(false);

  useEffect(() => {
    const target = node.current!;
    const made = (chart.current = new Chart(plotly, target));
    const sight = new IntersectionObserver(entries => setSeen(entries.some(entry => entry.isIntersecting)), { rootMargin: '200px' });
    const size = new ResizeObserver(() => made.resize());
    sight.observe(target);
    size.observe(target);
    return () => {
      sight.disconnect();
      size.disconnect();
      made.dispose();
    };
  }, [plotly]);

  const colours = useColours(node, theme);
  useEffect(() => chart.current?.forget(), [theme]);

  const lines = keys.flatMap((key, place): Line[] => {
    const curve = hub.curves.of(key).get(metric);
    const isShown = curve && curve.length > 0 && !hidden.has(key);
    return isShown ? [{ name: names[place] ?? key, curve, ...lineStyle(colours, place) }] : [];
  });
  useEffect(() => {
    if (seen && (lines.length > 0 || hidden.size > 0)) {
      chart.current?.draw(lines, { horizontal: trans.__('frames'), smoothing, log });
    }
  }, [seen, growth, colours, hidden, smoothing, log]);

  const last = lines.length === 1 ? number(lines[0]!.curve.y[lines[0]!.curve.length - 1]) : '';
  return (
    <figure className="rlnb-Chart">
      <figcaption>
        {metric}
        {last && <span> {last}</span>}
      </figcaption>
      <div
        ref={node}
        role="img"
        aria-label={last ? trans.__('Curve of %1, last value %2', metric, last) : trans.__('Curves of %1', metric)}
      />
    </figure>
  );
}
