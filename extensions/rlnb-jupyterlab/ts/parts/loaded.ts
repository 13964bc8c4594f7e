import { type DependencyList, useCallback, useEffect, useState } from 'react';

import { type Refusal, refusalOf } from '../server/server';
import { useShown } from './view';

export interface Loaded<T> {
  readonly value: T | null;
  readonly failure: Refusal | null;
  reload(): void;
}

/** What the server answers, asked while the view is shown: again when a dependency changes, and every so often. */
export function useLoaded<T>(load: () => Promise<T>, dependencies: DependencyList, every: number | null = null): Loaded<T> {
  const shown = useShown();
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState<{ value: T | null; failure: Refusal | null }>({ value: null, failure: null });
  useEffect(() => {
    if (!shown) {
      return;
    }
    let wanted = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      try {
        const value = await load();
        if (wanted) {
          setState({ value, failure: null });
        }
      } catch (reason) {
        if (wanted) {
          setState(before => ({ value: before.value, failure: refusalOf(reason) }));
        }
      }
      // The next question is asked after an answer: a slow server gets no heap of them.
      if (wanted && every !== null) {
        timer = setTimeout(() => void ask(), every);
      }
    };
    void ask();
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [...dependencies, shown, every, turn]);
  return { ...state, reload: useCallback(() => setTurn(n => n + 1), []) };
}
