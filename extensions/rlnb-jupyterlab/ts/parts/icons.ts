import { LabIcon } from '@jupyterlab/ui-components';

import cluster from '../../style/icons/cluster.svg';
import compare from '../../style/icons/compare.svg';
import goodput from '../../style/icons/goodput.svg';
import runs from '../../style/icons/runs.svg';
import scene from '../../style/icons/scene.svg';
import tensorboard from '../../style/icons/tensorboard.svg';

export const runsIcon = new LabIcon({ name: 'rlnb:runs', svgstr: runs });
export const compareIcon = new LabIcon({ name: 'rlnb:compare', svgstr: compare });
export const sceneIcon = new LabIcon({ name: 'rlnb:scene', svgstr: scene });
export const tensorboardIcon = new LabIcon({ name: 'rlnb:tensorboard', svgstr: tensorboard });
export const goodputIcon = new LabIcon({ name: 'rlnb:goodput', svgstr: goodput });
export const clusterIcon = new LabIcon({ name: 'rlnb:cluster', svgstr: cluster });
