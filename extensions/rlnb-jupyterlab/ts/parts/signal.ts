import type { ISignal } from '@lumino/signaling';
import { useCallback, useSyncExternalStore } from 'react';

/** What `read` returns, now and after each signal. It has to return the same thing while nothing changed. */
export function useSignal<S, A, T>(signal: ISignal<S, A>, read: () => T): T {
  const subscribe = useCallback(
    (tell: () => void) => {
      signal.connect(tell);
      return () => signal.disconnect(tell);
    },
    [signal]
  );
  return useSyncExternalStore(subscribe, read);
}
