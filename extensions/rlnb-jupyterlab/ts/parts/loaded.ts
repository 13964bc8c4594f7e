import { type DependencyList, useCallback, useEffect, useState } from 'react';

import { type Refusal, refusalOf } from '../server/server';
import { useShown } from './view';

export interface Loaded<T> {
  readonly value: T | null;
  readonly failure: Refusal | null;
  reload(): void;
}

/** Loads a value while the view is visible: again when a dependency changes, and every `every` milliseconds. */
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
      // The next request waits for this response, so that requests to a slow server do not pile up.
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
