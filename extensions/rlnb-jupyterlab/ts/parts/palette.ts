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

/** Returns the colours of the current theme for lines of charts, which style sheets do not reach. */
export function lineColours(node: HTMLElement): readonly string[] {
  const style = getComputedStyle(node);
  return LINES.map(name => style.getPropertyValue(name).trim()).filter(Boolean);
}

/** Returns the style of the n-th of several lines. When the colours are used up, they repeat with dashes. */
export function lineStyle(colours: readonly string[], n: number): { color: string; dash: string } {
  const count = Math.max(1, colours.length);
  return { color: colours[n % count] ?? 'gray', dash: DASHES[Math.floor(n / count) % DASHES.length]! };
}
