/** The value of a label in the text format of Prometheus, without its quotes. */
export const labelValue = (text: string): string =>
  /["\\\n]/.test(text) ? text.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n') : text
