import { MimeModel } from '@jupyterlab/rendermime';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { Widget } from '@lumino/widgets';
import { type ReactElement, useLayoutEffect, useRef, useState } from 'react';

import { Failure } from '../parts/failure';
import { useLoaded } from '../parts/loaded';
import { useDesk } from '../parts/view';
import type { Bundle } from '../server/protocol';

/** The figures that plugins draw of a run. Plugins may be slow, so they draw only when the view opens, and on request. */
export function Figures({ runKey, iteration }: { runKey: string; iteration: number }): ReactElement {
  const { server, trans } = useDesk();
  const { value: figures, failure, reload } = useLoaded(() => server.figures(runKey), [server, runKey]);
  const [drawn, setDrawn] = useState(iteration);
  return (
    <div className="rlnb-Scroll">
      <Failure of={failure} />
      {!figures && !failure && <p className="rlnb-Empty">{trans.__('The plugins are drawing the figures …')}</p>}
      {figures?.length === 0 && <p className="rlnb-Empty">{trans.__('No plugin draws figures of this run.')}</p>}
      {drawn < iteration && (
        <div className="rlnb-Buttons">
          <button
            className="jp-mod-styled"
            onClick={() => {
              setDrawn(iteration);
              reload();
            }}
          >
            {trans.__('Draw again')}
          </button>
        </div>
      )}
      {figures?.map((bundle, i) => <Rendered key={i} bundle={bundle} />)}
    </div>
  );
}

/** A bundle as an untrusted notebook would show it: no scripts in its HTML. */
function Rendered({ bundle }: { bundle: Bundle }): ReactElement {
  const { rendermime } = useDesk();
  const node = useRef<HTMLDivElement>(null);
  // A widget has to be detached while its parent node is still in the document.
  useLayoutEffect(() => {
    const data = bundle as ReadonlyPartialJSONObject;
    const type = rendermime.preferredMimeType(data, 'ensure');
    if (!type || !node.current) {
      return;
    }
    const renderer = rendermime.createRenderer(type);
    Widget.attach(renderer, node.current);
    void renderer.renderModel(new MimeModel({ data: { ...data }, trusted: false }));
    return () => {
      Widget.detach(renderer);
      renderer.dispose();
    };
  }, [rendermime, bundle]);
  return <div ref={node} className="rlnb-Rendered" />;
}
