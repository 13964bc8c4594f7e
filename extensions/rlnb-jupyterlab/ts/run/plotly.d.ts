/** Plotly's own types are a package ten times the size of this extension. */
declare module 'plotly.js-basic-dist-min' {
  const plotly: import('../../../../rlnb/curves/chart.js').Plotly;
  export default plotly;
}
