// What the vendored interpreter of expressions takes from vega-util, which is inside vega.
export const { ascending, isString, DisallowedObjectProperties } = window.vega;
