/** Flags that several commands have. */
export const connectionFlags = {
  server: {
    kind: 'parsed',
    parse: String,
    optional: true,
    placeholder: 'URL',
    brief: 'The broker; also CTB_SERVER. Its token comes from CTB_TOKEN or --token-file.',
  },
  tokenFile: { kind: 'parsed', parse: String, optional: true, placeholder: 'FILE', brief: 'A file with the token.' },
  ca: { kind: 'parsed', parse: String, optional: true, placeholder: 'FILE', brief: 'Certificates to trust, as PEM.' },
} as const

export const sinceFlag = {
  kind: 'parsed',
  parse: String,
  optional: true,
  placeholder: 'TIME',
  brief: 'From edges that had a new flow since then: 2026-01-31T09:00:00Z, or 15m, 7d.',
} as const
