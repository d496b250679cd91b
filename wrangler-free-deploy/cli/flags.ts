/** Flags that several commands have, and the two forms of flags. */

/** A flag with a value that the broker checks. */
export const valued = (placeholder: string, brief: string) =>
  ({ kind: 'parsed', parse: String, optional: true, placeholder, brief }) as const

/** A flag with one of these values; without it the broker's own default counts. */
export const chosen = <T extends string>(values: readonly T[], brief: string) =>
  ({ kind: 'enum', values, optional: true, brief }) as const

export const connectionFlags = {
  server: valued('URL', 'The broker; else CTB_SERVER, else http://127.0.0.1:9090.'),
  context: valued('NAME', 'A context of kubeconfig: the broker in its cluster, through kubectl port-forward.'),
  kubeconfig: valued('FILE', 'The kubeconfig for it; else that of kubectl.'),
  brokerNamespace: valued('NAME', "The namespace of the broker's Service in the cluster, if there are several."),
  brokerService: valued('NAME', "The name of the broker's Service, if it is not to be searched by its labels."),
  tokenFile: valued('FILE', 'A file with the token; else CTB_TOKEN, else KGUARDIAN_BROKER_TOKEN.'),
  /** The name that other clients of the broker have for it. */
  brokerTokenFile: { ...valued('FILE', 'The same.'), hidden: true },
  ca: valued('FILE', 'Certificates to trust instead of the usual ones, as PEM.'),
} as const

export const sinceFlag = valued('TIME', 'Only edges with a new flow since 2026-01-31T09:00:00Z, 15m, 7d.')

export const colorFlag = {
  kind: 'enum',
  values: ['auto', 'always', 'never'],
  default: 'auto',
  brief: 'Colours; auto: on a terminal, unless NO_COLOR is set.',
} as const
