/** The workload of the address, and the tabs of its dossier. */

export interface Named {
  readonly namespace: string
  readonly kind: string
  readonly name: string
}

export const TABS = {
  '': 'Overview',
  flows: 'Flows',
  vulnerabilities: 'Vulnerabilities',
  seccomp: 'Seccomp',
  runtime: 'Runtime',
  compute: 'Compute',
  trust: 'Trust',
  changes: 'Changes',
} as const
export type TabName = keyof typeof TABS

export const isTab = (text: string): text is TabName => Object.hasOwn(TABS, text)

/** `namespace/Kind/name`, as filters of flows and the command line take it. */
export const wholeName = ({ namespace, kind, name }: Named): string => `${namespace}/${kind}/${name}`
