/** Workloads as arguments. */
import { EXIT, Failure } from '../failure.ts'

/** The segments of `NAMESPACE/KIND/NAME`, or of `KIND/NAME` in a namespace. @throws Failure for anything else */
export function workloadPath(text: string, namespace: string | undefined): string[] {
  const parts = [...(namespace === undefined ? [] : [namespace]), ...text.split('/')]
  // A path loses segments of dots.
  if (parts.length === 3 && parts.every((part) => !/^\.{0,2}$/.test(part))) return parts
  throw new Failure('expected NAMESPACE/KIND/NAME, or --namespace with KIND/NAME', EXIT.usage)
}
