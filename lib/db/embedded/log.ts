/** Where the database folder writes its lines; the caller decides on format and threshold. */
export type Log = (level: 'debug' | 'info' | 'warn', message: string, fields?: object) => void
