/** The tone of a badge, from good to bad. */
export type Tone = 'bad' | 'warn' | 'good' | 'info' | 'plain'
