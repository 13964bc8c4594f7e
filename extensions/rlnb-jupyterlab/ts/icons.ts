import { LabIcon } from '@jupyterlab/ui-components';

import cluster from '../style/icons/cluster.svg';
import compare from '../style/icons/compare.svg';
import runs from '../style/icons/runs.svg';

export const runsIcon = new LabIcon({ name: 'rlnb:runs', svgstr: runs });
export const compareIcon = new LabIcon({ name: 'rlnb:compare', svgstr: compare });
export const clusterIcon = new LabIcon({ name: 'rlnb:cluster', svgstr: cluster });
