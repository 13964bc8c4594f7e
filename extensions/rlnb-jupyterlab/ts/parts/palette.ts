/** Colours of the theme, for charts, which style sheets do not reach. */
export interface Palette {
  readonly text: string;
  readonly faint: string;
  readonly background: string;
  readonly grid: string;
  readonly font: string;
  readonly lines: readonly string[];
}

const LINES = [
  '--jp-brand-color1',
  '--jp-warn-color1',
  '--jp-success-color1',
  '--jp-error-color1',
  '--jp-mirror-editor-keyword-color',
  '--jp-info-color1',
  '--jp-mirror-editor-string-color',
  '--jp-mirror-editor-number-color'
];
const DASHES = ['solid', 'dash', 'dot'];

/** Returns the colours of the current theme. */
export function paletteOf(node: HTMLElement): Palette {
  const style = getComputedStyle(node);
  const read = (name: string) => style.getPropertyValue(name).trim();
  return {
    text: read('--jp-ui-font-color1'),
    faint: read('--jp-ui-font-color3'),
    background: read('--jp-layout-color1'),
    grid: read('--jp-border-color2'),
    font: read('--jp-ui-font-family'),
    lines: LINES.map(read).filter(Boolean)
  };
}

/** Returns the style of the n-th of several lines. When the colours are used up, they repeat with dashes. */
export function lineStyle(palette: Palette, n: number): { color: string; dash: string } {
  const count = Math.max(1, palette.lines.length);
  return { color: palette.lines[n % count] ?? palette.text, dash: DASHES[Math.floor(n / count) % DASHES.length]! };
}
