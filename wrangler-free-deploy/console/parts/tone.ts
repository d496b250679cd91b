/** How good or bad a badge says that something is. */
export type Tone = 'bad' | 'warn' | 'good' | 'info' | 'plain'
