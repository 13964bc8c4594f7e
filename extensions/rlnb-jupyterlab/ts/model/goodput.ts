/** A piece of a bar, in percent of the bar's length. */
export interface Piece {
  readonly part: string;
  readonly seconds: number;
  readonly percent: number;
}

/** Seconds below which a piece is left out, since it would be labelled 0.0 s. */
const SHORTEST = 0.05;

/** Returns the pieces of a bar, without empty ones. A bar of `longest` seconds has the whole length. */
export function pieces(parts: readonly string[], seconds: readonly number[], longest: number): readonly Piece[] {
  return parts.flatMap((part, i) => {
    const length = seconds[i] ?? 0;
    return length >= SHORTEST && longest > 0 ? [{ part, seconds: length, percent: (100 * length) / longest }] : [];
  });
}

export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
