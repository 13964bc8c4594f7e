import { memo, type ReactElement } from 'react';

const WIDTH = 48;
const HEIGHT = 16;

/** A small curve of a few numbers, without axes. The row shows the last value as text. */
export const Sparkline = memo(function Sparkline({ values }: { values: readonly number[] }): ReactElement | null {
  if (values.length < 2) {
    return null;
  }
  const least = Math.min(...values);
  const range = Math.max(...values) - least || 1;
  const points = values.map(
    (value, i) =>
      `${((i / (values.length - 1)) * WIDTH).toFixed(1)},${(HEIGHT - 1 - ((value - least) / range) * (HEIGHT - 2)).toFixed(1)}`
  );
  return (
    <svg className="rlnb-Sparkline" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      <polyline points={points.join(' ')} />
    </svg>
  );
});
