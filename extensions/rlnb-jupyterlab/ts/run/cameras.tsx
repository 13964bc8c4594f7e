import { type ReactElement, useEffect, useRef, useState } from 'react';

import { Failure } from '../parts/failure';
import { useSignal } from '../parts/signal';
import { useDesk, useShown } from '../parts/view';
import type { Detail } from '../server/protocol';
import { type Refusal, refusalOf } from '../server/server';

const STILL = /\.(png|jpe?g|gif|webp)$/i;
const FILM = /\.mp4$/i;
/** Factor by which a failure lengthens the interval to the next request. */
const PATIENCE = 10;

/** The live pictures of a training's cameras, and the pictures and films among the run's files. */
export function Cameras({ detail, live }: { detail: Detail; live: boolean }): ReactElement {
  const { server, trans } = useDesk();
  const { key } = detail.row;
  const films = detail.files.filter(file => FILM.test(file.path));
  const stills = detail.files.filter(file => STILL.test(file.path));
  return (
    <div className="rlnb-Scroll">
      {live && <Live runKey={key} />}
      {!live && films.length + stills.length === 0 && (
        <p className="rlnb-Empty">{trans.__('The run is not running and has no pictures.')}</p>
      )}
      <div className="rlnb-Pictures">
        {films.map(({ path }) => (
          <figure key={path}>
            <video controls preload="metadata" src={server.fileUrl(key, path)} aria-label={path} />
            <figcaption>{path}</figcaption>
          </figure>
        ))}
        {stills.map(({ path }) => (
          <figure key={path}>
            <img loading="lazy" src={server.fileUrl(key, path)} alt={path} />
            <figcaption>{path}</figcaption>
          </figure>
        ))}
      </div>
    </div>
  );
}

/** The newest picture, requested only while the view is visible: a training renders pictures only on request. */
function Live({ runKey }: { runKey: string }): ReactElement {
  const { server, preferences, trans } = useDesk();
  const shown = useShown();
  const interval = useSignal(preferences.changed, () => preferences.frameInterval);
  const [address, setAddress] = useState<string | null>(null);
  const [failure, setFailure] = useState<Refusal | null>(null);
  const held = useRef<string | null>(null);

  useEffect(() => {
    if (!shown) {
      return;
    }
    let wanted = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async () => {
      const began = performance.now();
      let pause = interval;
      try {
        const picture = await server.frame(runKey);
        if (wanted && picture) {
          const old = held.current;
          setAddress((held.current = URL.createObjectURL(picture)));
          if (old) {
            URL.revokeObjectURL(old);
          }
        }
        if (wanted) {
          setFailure(null);
        }
      } catch (reason) {
        pause *= PATIENCE;
        if (wanted) {
          setFailure(refusalOf(reason));
        }
      }
      if (wanted) {
        timer = setTimeout(() => void look(), Math.max(0, pause - (performance.now() - began)));
      }
    };
    void look();
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [server, runKey, shown, interval]);

  useEffect(
    () => () => {
      if (held.current) {
        URL.revokeObjectURL(held.current);
        held.current = null;
      }
    },
    []
  );

  return (
    <figure className="rlnb-Live">
      <Failure of={failure} />
      {address ? (
        <img src={address} alt={trans.__('Current camera pictures')} />
      ) : (
        <p className="rlnb-Empty">{trans.__('No picture yet. Trainings without cameras have none.')}</p>
      )}
      {address && <figcaption>{trans.__('Live')}</figcaption>}
    </figure>
  );
}
