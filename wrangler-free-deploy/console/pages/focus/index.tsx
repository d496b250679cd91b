/** One workload between its callers and its callees. */
import type { PageProps } from '../index.ts'
import { Choose } from './choose.tsx'
import { Focus } from './focus.tsx'
import './focus.css'

export default function FocusPage({ rest }: PageProps) {
  const [namespace, kind, name] = rest
  if (namespace === undefined || kind === undefined || name === undefined) return <Choose start={rest.join('/')} />
  return <Focus key={rest.join('/')} workload={{ namespace, kind, name }} />
}
