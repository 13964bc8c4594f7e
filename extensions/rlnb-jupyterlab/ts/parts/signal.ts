import type { ISignal } from '@lumino/signaling';
import { useCallback, useSyncExternalStore } from 'react';

/** Returns the result of `read`, now and after each signal. `read` has to return the same object until something changes. */
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
